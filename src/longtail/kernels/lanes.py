"""Vector instructions for sixteen labels side by side, of which the solvers and the scoring are made.

Numba does not turn 16-wide inner loops into vector code by itself, so the innermost steps are written as
LLVM vectors of sixteen floats; LLVM maps them to whatever the CPU has (512, 256 or 128 bits). The tests hold a
plain twin of every step in numpy. This is the only file that knows about LLVM.

Lanes are labels: `W` is (n_features + 1, 16), one column per label, the last row the bias.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from longtail.kernels.compilation import njit
from longtail.kernels.kernel_cache import CHECKED

LANES = 16

_VEC = ir.VectorType(ir.FloatType(), LANES)
_I16 = ir.IntType(16)
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_FAST = ("contract",)  # a multiply and an add may fuse; nothing else may change


def _data(context: Any, builder: Any, ty: Any, value: Any) -> Any:
    return context.make_array(ty)(context, builder, value).data


def _splat(b: Any, x: Any) -> Any:
    undef = ir.Constant(_VEC, ir.Undefined)
    zeros = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
    return b.shuffle_vector(b.insert_element(undef, x, ir.Constant(_I32, 0)), undef, zeros)


def _const(value: float) -> Any:
    return ir.Constant(_VEC, [value] * LANES)


def _load(b: Any, pointer: Any, row: Any) -> Any:
    """Load row `row` of a (n, 16) array."""
    at = b.gep(pointer, [b.mul(row, ir.Constant(_I64, LANES))])
    out = b.load(b.bitcast(at, _VEC.as_pointer()))
    out.align = 4
    return out


def _store(b: Any, value: Any, pointer: Any, row: Any) -> None:
    at = b.gep(pointer, [b.mul(row, ir.Constant(_I64, LANES))])
    b.store(value, b.bitcast(at, _VEC.as_pointer())).align = 4


def _mask(b: Any, bits: Any) -> Any:
    """Turn sixteen bits into a vector of sixteen truth values, lane 0 from the lowest bit."""
    return b.bitcast(bits, ir.VectorType(ir.IntType(1), LANES))


def _fma(b: Any, x: Any, y: Any, z: Any) -> Any:
    return b.fadd(b.fmul(x, y, flags=_FAST), z, flags=_FAST)


@intrinsic
def _dot_lanes(typing_context, W, ids, values, start, stop, base, out):
    """out[:] = W[base] + sum over t in [start, stop) of values[t] * W[ids[t]]."""

    def codegen(context: Any, b: Any, signature: Any, args: Any) -> Any:
        w, i, v, o = (_data(context, b, signature.args[n], args[n]) for n in (0, 1, 2, 6))
        start, stop, base = args[3], args[4], args[5]
        accumulators = [cgutils.alloca_once_value(b, _const(0.0)) for _ in range(4)]
        b.store(_load(b, w, base), accumulators[0])

        def add(t: Any, accumulator: Any) -> None:
            row = b.sext(b.load(b.gep(i, [t])), _I64)
            x = _splat(b, b.load(b.gep(v, [t])))
            b.store(_fma(b, x, _load(b, w, row), b.load(accumulator)), accumulator)

        count = b.sub(stop, start)
        fours = b.lshr(count, ir.Constant(_I64, 2))
        with cgutils.for_range(b, fours) as loop:  # four sums at once hide the latency of the multiply-add
            t = b.add(start, b.shl(loop.index, ir.Constant(_I64, 2)))
            for n, accumulator in enumerate(accumulators):
                add(b.add(t, ir.Constant(_I64, n)), accumulator)
        done = b.add(start, b.shl(fours, ir.Constant(_I64, 2)))
        with cgutils.for_range(b, b.sub(stop, done)) as loop:
            add(b.add(done, loop.index), accumulators[0])
        a0, a1, a2, a3 = (b.load(a) for a in accumulators)
        _store(b, b.fadd(b.fadd(a0, a1), b.fadd(a2, a3)), o, ir.Constant(_I64, 0))
        return context.get_dummy_value()

    return types.void(W, ids, values, types.int64, types.int64, types.int64, out), codegen


@intrinsic
def _axpy_lanes(typing_context, W, ids, values, start, stop, base, bias, delta):
    """W[ids[t]] += values[t] * delta for t in [start, stop); W[base] += bias * delta."""

    def codegen(context: Any, b: Any, signature: Any, args: Any) -> Any:
        w, i, v, d = (_data(context, b, signature.args[n], args[n]) for n in (0, 1, 2, 7))
        start, stop, base, bias = args[3], args[4], args[5], args[6]
        step = _load(b, d, ir.Constant(_I64, 0))
        with cgutils.for_range(b, b.sub(stop, start)) as loop:
            t = b.add(start, loop.index)
            row = b.sext(b.load(b.gep(i, [t])), _I64)
            x = _splat(b, b.load(b.gep(v, [t])))
            _store(b, _fma(b, x, step, _load(b, w, row)), w, row)
        _store(b, _fma(b, _splat(b, bias), step, _load(b, w, base)), w, base)
        return context.get_dummy_value()

    signature = types.void(W, ids, values, types.int64, types.int64, types.int64, types.float32, delta)
    return signature, codegen


@intrinsic
def _score_lanes(typing_context, W, ids, values, start, stop, base, scale, out):
    """out[:] = W[base] + sum over t in [start, stop) of (values[t] * scale) * W[ids[t]], for 32 lanes.

    Terms are added one after the other and nothing is fused, so that a score is the same to the last bit as when it
    is summed label by label.
    """

    def codegen(context: Any, b: Any, signature: Any, args: Any) -> Any:
        w, i, v, o = (_data(context, b, signature.args[n], args[n]) for n in (0, 1, 2, 7))
        start, stop, base, scale = args[3], args[4], args[5], args[6]
        one, two = ir.Constant(_I64, 1), ir.Constant(_I64, 2)
        left = cgutils.alloca_once_value(b, _load(b, w, b.mul(base, two)))
        right = cgutils.alloca_once_value(b, _load(b, w, b.add(b.mul(base, two), one)))
        with cgutils.for_range(b, b.sub(stop, start)) as loop:
            t = b.add(start, loop.index)
            row = b.mul(b.sext(b.load(b.gep(i, [t])), _I64), two)
            x = _splat(b, b.fmul(b.load(b.gep(v, [t])), scale))
            b.store(b.fadd(b.load(left), b.fmul(x, _load(b, w, row))), left)
            b.store(b.fadd(b.load(right), b.fmul(x, _load(b, w, b.add(row, one)))), right)
        _store(b, b.load(left), o, ir.Constant(_I64, 0))
        _store(b, b.load(right), o, one)
        return context.get_dummy_value()

    return types.void(W, ids, values, types.int64, types.int64, types.int64, types.float32, out), codegen


def _int8_sums(vectors):
    """Make the function that sums 16 · `vectors` neighbouring columns of a block of whole numbers."""
    bytes_16, ints_16 = ir.VectorType(ir.IntType(8), LANES), ir.VectorType(_I32, LANES)

    @intrinsic
    def sums(typing_context, block, start, lines, values, n, width, offset, out):
        def codegen(context: Any, b: Any, signature: Any, args: Any) -> Any:
            w, i, v, o = (_data(context, b, signature.args[k], args[k]) for k in (0, 2, 3, 7))
            start, n, width, offset = args[1], args[4], args[5], args[6]
            first = b.gep(w, [b.add(start, offset)])
            totals = [cgutils.alloca_once_value(b, _const(0.0)) for _ in range(vectors)]
            with cgutils.for_range(b, n) as loop:
                row = b.mul(b.sext(b.load(b.gep(i, [loop.index])), _I64), width)
                x = _splat(b, b.load(b.gep(v, [loop.index])))
                for k, total in enumerate(totals):
                    at = b.gep(first, [b.add(row, ir.Constant(_I64, LANES * k))])
                    small = b.load(b.bitcast(at, bytes_16.as_pointer()))
                    small.align = 1
                    as_float = b.sitofp(b.sext(small, ints_16), _VEC)
                    b.store(b.fadd(b.load(total), b.fmul(x, as_float)), total)
            for k, total in enumerate(totals):
                at = b.gep(o, [b.add(offset, ir.Constant(_I64, LANES * k))])
                b.store(b.load(total), b.bitcast(at, _VEC.as_pointer())).align = 4
            return context.get_dummy_value()

        i64 = types.int64
        return types.void(block, i64, lines, values, i64, i64, i64, out), codegen

    return sums


@njit(nogil=True, cache=True)
def _check_sums(block, start, lines, values, n, width, out):
    """Refuse indices of `sum_int8_lines` that lead out of its arrays."""
    if not (0 <= n <= lines.size and n <= values.size and 0 <= width <= out.size):
        raise IndexError("sums of lines: more lines or columns than there are")
    for t in range(n):
        if lines[t] < 0 or start < 0 or start + (lines[t] + 1) * width > block.size:
            raise IndexError("sums of lines: a line is out of bounds")


_sum_16, _sum_32, _sum_64 = _int8_sums(1), _int8_sums(2), _int8_sums(4)


@njit(nogil=True, cache=True)
def sum_int8_lines(block, start, lines, values, n, width, out):
    """`out[:width]` = sum over t < n of `values[t] · block[start + lines[t] · width:][:width]`; width in sixteens.

    `block` is flat int8. Added one after the other, nothing fused, as in `score_lanes`.
    """
    if CHECKED:
        _check_sums(block, start, lines, values, n, width, out)
    offset = 0
    while width - offset >= 4 * LANES:
        _sum_64(block, start, lines, values, n, width, offset, out)
        offset += 4 * LANES
    if width - offset >= 2 * LANES:
        _sum_32(block, start, lines, values, n, width, offset, out)
        offset += 2 * LANES
    if width - offset >= LANES:
        _sum_16(block, start, lines, values, n, width, offset, out)


@intrinsic
def _add_int8_row(typing_context, block, start, x, width, out):
    """out[:width] += x · block[start : start + width], width in sixteens; nothing fused."""

    def codegen(context: Any, b: Any, signature: Any, args: Any) -> Any:
        w, o = (_data(context, b, signature.args[k], args[k]) for k in (0, 4))
        bytes_16, ints_16 = ir.VectorType(ir.IntType(8), LANES), ir.VectorType(_I32, LANES)
        first, x = b.gep(w, [args[1]]), _splat(b, args[2])
        with cgutils.for_range(b, b.lshr(args[3], ir.Constant(_I64, 4))) as loop:
            small = b.load(
                b.bitcast(b.gep(first, [b.mul(loop.index, ir.Constant(_I64, LANES))]), bytes_16.as_pointer())
            )
            small.align = 1
            term = b.fmul(x, b.sitofp(b.sext(small, ints_16), _VEC))
            _store(b, b.fadd(_load(b, o, loop.index), term), o, loop.index)
        return context.get_dummy_value()

    return types.void(block, types.int64, types.float32, types.int64, out), codegen


@njit(nogil=True, cache=True)
def add_int8_row(block, start, x, width, out):
    """out[:width] += x · block[start : start + width]; width in sixteens, `block` flat int8, nothing fused."""
    if CHECKED and not (start >= 0 and start + width <= block.size and 0 <= width <= out.size):
        raise IndexError("a row of whole numbers is out of bounds")
    _add_int8_row(block, start, x, width, out)


@intrinsic
def _hinge_step_lanes(
    typing_context, dot, alpha, row, positive, active, norm, diagonal, d_row, old_max, high, low, delta
):
    """One squared-hinge coordinate step of one row for sixteen labels at once.

    With y = ±1 from the bits of `positive` and D the diagonal term of the row's lanes (row `d_row` of `diagonal`
    if it is >= 0, else row 0 of it for negatives and row 1 for positives):

        G     = y · dot - 1 + D · alpha            gradient
        PG    = min(G, 0) where alpha = 0, else G  projected gradient; `high`, `low` keep its extremes per lane
        alpha = max(alpha - G / (norm + D), 0)     the exact minimum along the coordinate
        delta = y · (change of alpha)

    A lane with alpha = 0 and G above `old_max` is shrunk: it leaves `active`. Returns the lanes still active (low
    16 bits) and the lanes whose alpha moved (next 16 bits).
    """

    def codegen(context: Any, b: Any, signature: Any, args: Any) -> Any:
        pointer = {n: _data(context, b, signature.args[n], args[n]) for n in (0, 1, 6, 8, 9, 10, 11)}
        row, norm, d_row = args[2], args[5], args[7]
        zero = ir.Constant(_I64, 0)
        positive = _mask(b, b.trunc(args[3], _I16))
        active = _mask(b, b.trunc(args[4], _I16))
        given = b.icmp_signed(">=", d_row, zero)
        d_negative = _load(b, pointer[6], b.select(given, d_row, zero))
        d_positive = _load(b, pointer[6], b.select(given, d_row, ir.Constant(_I64, 1)))
        D = b.select(positive, d_positive, d_negative)
        y = b.select(positive, _const(1.0), _const(-1.0))
        a = _load(b, pointer[1], row)
        dot = _load(b, pointer[0], zero)
        G = b.fadd(b.fsub(b.fmul(y, dot), _const(1.0)), b.fmul(D, a))
        at_zero = b.fcmp_ordered("<=", a, _const(0.0))
        negative_G = b.fcmp_ordered("<", G, _const(0.0))
        PG = b.select(b.and_(at_zero, b.not_(negative_G)), _const(0.0), G)
        shrunk = b.and_(at_zero, b.fcmp_ordered(">", G, _load(b, pointer[8], zero)))
        active = b.and_(active, b.not_(shrunk))
        high, low = _load(b, pointer[9], zero), _load(b, pointer[10], zero)
        above = b.and_(active, b.fcmp_ordered(">", PG, high))
        below = b.and_(active, b.fcmp_ordered("<", PG, low))
        _store(b, b.select(above, PG, high), pointer[9], zero)
        _store(b, b.select(below, PG, low), pointer[10], zero)
        new = b.fsub(a, b.fdiv(G, b.fadd(_splat(b, norm), D)))
        new = b.select(b.fcmp_ordered(">", new, _const(0.0)), new, _const(0.0))
        new = b.select(active, new, a)
        moved = b.fcmp_ordered("!=", new, a)
        _store(b, new, pointer[1], row)
        _store(b, b.fmul(y, b.fsub(new, a)), pointer[11], zero)
        still = b.zext(b.bitcast(active, _I16), _I64)
        changed = b.zext(b.bitcast(moved, _I16), _I64)
        return b.or_(still, b.shl(changed, ir.Constant(_I64, 16)))

    i64 = types.int64
    signature = i64(dot, alpha, i64, i64, i64, types.float32, diagonal, i64, old_max, high, low, delta)
    return signature, codegen


@intrinsic
def prefetch(typing_context, array, at):
    """Ask for the cache line of array[at] ahead of its use."""

    def codegen(context: Any, b: Any, signature: Any, args: Any) -> Any:
        pointer = b.gep(_data(context, b, signature.args[0], args[0]), [args[1]])
        address = b.bitcast(pointer, ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [address.type, _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(b.module, kind, "llvm.prefetch.p0")
        read, keep, cache = ir.Constant(_I32, 0), ir.Constant(_I32, 3), ir.Constant(_I32, 1)
        b.call(function, [address, read, keep, cache])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@intrinsic
def popcount(typing_context, word):
    """Count the bits that are set in a 64-bit word."""

    def codegen(context: Any, b: Any, signature: Any, args: Any) -> Any:
        return b.ctpop(args[0])

    return types.uint64(types.uint64), codegen


def _compare_lanes(absolute):
    """Make the function that compares sixteen values side by side with one, or how far they are from 0."""

    @intrinsic
    def compare(typing_context, values, start, least):
        def codegen(context: Any, b: Any, signature: Any, args: Any) -> Any:
            at = b.gep(_data(context, b, signature.args[0], args[0]), [args[1]])
            lanes = b.load(b.bitcast(at, _VEC.as_pointer()))
            lanes.align = 4
            if absolute:
                lanes = b.select(b.fcmp_ordered("<", lanes, _const(0.0)), b.fneg(lanes), lanes)
            return b.zext(b.bitcast(b.fcmp_ordered(">=", lanes, _splat(b, args[2])), _I16), _I64)

        return types.uint64(values, types.int64, types.float32), codegen

    return compare


_lanes_at_least, _lanes_from = _compare_lanes(False), _compare_lanes(True)


@intrinsic
def lowest_bit(typing_context, word):
    """Return the number of the lowest bit that is set in a 64-bit word that is not 0."""

    def codegen(context: Any, b: Any, signature: Any, args: Any) -> Any:
        return b.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


# --- checked mode: the same steps after a look at every index ---------------------------------------------------------


@njit(nogil=True, cache=True)
def _check_rows(W, ids, values, start, stop, base, width, out):
    """Refuse indices of a sum over rows of `width` numbers that lead out of its arrays."""
    if not (start >= 0 and stop <= ids.size and stop <= values.size and out.size >= width):
        raise IndexError("sums of rows: entries are out of bounds")
    if not 0 <= base < W.size // width:
        raise IndexError("sums of rows: the first row is out of bounds")
    for t in range(start, stop):
        if not 0 <= ids[t] < W.size // width:
            raise IndexError("sums of rows: a row is out of bounds")


@njit(nogil=True, cache=True)
def _checked_dot_lanes(W, ids, values, start, stop, base, out):
    _check_rows(W, ids, values, start, stop, base, LANES, out)
    _dot_lanes(W, ids, values, start, stop, base, out)


@njit(nogil=True, cache=True)
def _checked_axpy_lanes(W, ids, values, start, stop, base, bias, delta):
    _check_rows(W, ids, values, start, stop, base, LANES, delta)
    _axpy_lanes(W, ids, values, start, stop, base, bias, delta)


@njit(nogil=True, cache=True)
def _checked_score_lanes(W, ids, values, start, stop, base, scale, out):
    _check_rows(W, ids, values, start, stop, base, 2 * LANES, out)
    _score_lanes(W, ids, values, start, stop, base, scale, out)


@njit(nogil=True, cache=True)
def _checked_hinge_step_lanes(dot, alpha, row, positive, active, norm, diagonal, d_row, old_max, high, low, delta):
    vectors = min(dot.size, old_max.size, high.size, low.size, delta.size)
    if vectors < LANES or not 0 <= row < alpha.size // LANES or (d_row if d_row >= 0 else 1) >= diagonal.size // LANES:
        raise IndexError("a step of sixteen labels: a row is out of bounds")
    return _hinge_step_lanes(dot, alpha, row, positive, active, norm, diagonal, d_row, old_max, high, low, delta)


@njit(nogil=True, cache=True)
def _checked_lanes_at_least(values, start, least):
    if not 0 <= start <= values.size - LANES:
        raise IndexError("sixteen values side by side are out of bounds")
    return _lanes_at_least(values, start, least)


@njit(nogil=True, cache=True)
def _checked_lanes_from(values, start, least):
    if not 0 <= start <= values.size - LANES:
        raise IndexError("sixteen values side by side are out of bounds")
    return _lanes_from(values, start, least)


# sixteen bits: which of values[start : start + 16] are at least `least`, or so far from 0
lanes_at_least = _checked_lanes_at_least if CHECKED else _lanes_at_least
lanes_from = _checked_lanes_from if CHECKED else _lanes_from
dot_lanes = _checked_dot_lanes if CHECKED else _dot_lanes
axpy_lanes = _checked_axpy_lanes if CHECKED else _axpy_lanes
score_lanes = _checked_score_lanes if CHECKED else _score_lanes
hinge_step_lanes = _checked_hinge_step_lanes if CHECKED else _hinge_step_lanes
