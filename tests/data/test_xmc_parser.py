"""The compiled parser of XMC text agrees with its plain twin and with Python's float."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plain_xmc_parser import parse_lines_plain

from longtail.data.formats.xmc_parser import (
    BAD_FEATURE,
    BAD_LABEL,
    BAD_VALUE,
    FEATURE_RANGE,
    LABEL_RANGE,
    NOT_FINITE,
    ParseProblem,
    count_tokens,
    parse_rows,
)

N_FEATURES, N_LABELS = 200_000, 100_000

numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-1000, max_value=1000).map(str),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(r"\A[+-]?[0-9]{0,25}\.[0-9]{1,25}([eE][+-]?[0-9]{1,3})?\Z", fullmatch=True),
)
labels = st.lists(st.integers(0, N_LABELS - 1).map(str), max_size=4).map(",".join)
features = st.lists(st.tuples(st.integers(0, N_FEATURES - 1), numbers).map(lambda p: f"{p[0]}:{p[1]}"), max_size=5)
good_lines = st.tuples(labels, features).map(lambda p: " ".join([p[0], *p[1]]))
# Near-grammatical noise: every way the grammar can break comes up.
noisy_lines = st.text(alphabet="019,:. \t\r-+eEnaif#x\xe9", max_size=25)


def same(text: bytes, n_features: int = N_FEATURES, n_labels: int = N_LABELS) -> None:
    fast, fast_problem = parse_rows(text, n_features, n_labels)
    slow, slow_problem = parse_rows(text, n_features, n_labels, parse_lines_plain)
    assert fast_problem == slow_problem
    for a, b in zip(fast, slow, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a.view(np.int32), b.view(np.int32))  # bit for bit: -0.0 is not 0.0


@settings(max_examples=300, deadline=None)
@given(st.lists(good_lines, max_size=6))
def test_agrees_with_the_plain_twin_on_good_lines(lines):
    same("".join(line + "\n" for line in lines).encode())


@settings(max_examples=500, deadline=None)
@given(st.lists(noisy_lines, max_size=4))
@example(["1,2:3"])
@example(["1 2:inf 3"])
@example(["1 2:3.4e38 3:3.5e38 4:nope"])
def test_agrees_with_the_plain_twin_on_bad_lines(lines):
    same("".join(line + "\n" for line in lines).encode(), n_features=12, n_labels=12)


@settings(max_examples=500, deadline=None)
@given(numbers)
@example("16777217")  # halfway between two float32 numbers
@example("1.000000059604644775390625")  # halfway, with more digits than fit the mantissa
@example("1.0000000596046447753906251")  # just above halfway
@example("1e-45")
@example("0.7006492321624085e-45")  # about half of the smallest float32
@example("340282346638528859811704183484516925440")
@example("1" + "0" * 38)
@example("." + "0" * 30 + "1")
def test_values_are_those_of_python_rounded_to_float32(number):
    with np.errstate(over="ignore"):
        expected = np.float32(float(number))
    rows, problem = parse_rows(f" 0:{number}\n".encode(), 1, 1)
    if np.isfinite(expected):
        assert problem is None
        assert rows.x_data.view(np.int32)[0] == expected.view(np.int32)
    else:
        assert problem == ParseProblem(NOT_FINITE, 0, 1)


def test_ids_above_65536_and_empty_rows():
    rows, problem = parse_rows(b"70000,99999 65536:1 199999:2\n\n 131072:3\n", N_FEATURES, N_LABELS)
    assert problem is None
    assert rows.y_indices.tolist() == [70000, 99999]
    assert rows.x_indices.tolist() == [65536, 199999, 131072]
    assert rows.x_indptr.tolist() == [0, 2, 2, 3]
    assert rows.y_indptr.tolist() == [0, 2, 2, 2]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"x 0:1\n", ParseProblem(BAD_LABEL, 0, 0)),
        (b"1,,2 0:1\n", ParseProblem(BAD_LABEL, 0, 2)),
        (b"0 0:1\n1, 0:1\n", ParseProblem(BAD_LABEL, 1, 8)),
        (b"0 0:1 7\n", ParseProblem(BAD_FEATURE, 0, 6)),
        (b"0 :1\n", ParseProblem(BAD_FEATURE, 0, 2)),
        (b"0 1:\n", ParseProblem(BAD_VALUE, 0, 2)),
        (b"0 1:1.2.3\n", ParseProblem(BAD_VALUE, 0, 2)),
        (b"0 1:1e\n", ParseProblem(BAD_VALUE, 0, 2)),
        (b"0 1:1_0\n", ParseProblem(BAD_VALUE, 0, 2)),
        (b"0 9:1\n", ParseProblem(FEATURE_RANGE, 0, 2)),
        (b"0 99999999999999999999999999:1\n", ParseProblem(FEATURE_RANGE, 0, 2)),
        (b"1,9 1:1\n", ParseProblem(LABEL_RANGE, 0, 2)),
        (b"0 1:NaN\n", ParseProblem(NOT_FINITE, 0, 2)),
        (b"0 1:1\n0 1:-inf\n", ParseProblem(NOT_FINITE, 1, 8)),
        (b"0 1:1e39 2:oops\n", ParseProblem(NOT_FINITE, 0, 2)),
    ],
)
def test_the_first_problem_is_named(text, problem):
    for kernel in (None, parse_lines_plain):
        assert parse_rows(text, 9, 9, kernel)[1] == problem


def test_rows_before_a_problem_are_returned():
    rows, problem = parse_rows(b"0 0:1\n1 1:2\n2 bad\n", 5, 5)
    assert problem is not None
    assert rows.x_data.tolist() == [1, 2]


def test_counts():
    assert count_tokens(np.frombuffer(b"1,2 3:4 5:6\n 7:8\n", dtype=np.uint8)) == (2, 3, 3)
