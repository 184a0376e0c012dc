"""List every measured table and figure of the docs with its command, and run those again that fit into an hour.

    python benchmarks/project/reproduce.py --list
    python benchmarks/project/reproduce.py [--data FOLDER] [--minutes 60] [--only eagle_simulation.json ...]

Each program writes into a temporary folder; what is stored stays as it is. Its results are compared with the stored
ones, value by value, within tolerances that depend on what a value is (`agreement.py`). Without --data those programs
run that need none. --note says what else is worth knowing about the run, such as that the machine was shared.

`--page` writes the tables of docs/reproduce.md from the pages and from the file of results.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import (
    DOCS,
    RESULTS,
    ROOT,
    Facts,
    make_parser,
    processor,
    read_results,
    start_facts,
    write_results,
)
from benchmarks.harness.terminal import show_table
from benchmarks.project.agreement import TOLERANCES, Rules, compare
from benchmarks.project.documented import PAGE_OF_THIS, Program, Shown, anchor, programs, shown

PAGE = DOCS / PAGE_OF_THIS
MARKS = "<!-- made by benchmarks/project/reproduce.py: {} {} -->"
LEAST_SECONDS, MOST_TIMES = 1800, 6  # a program may take so long, and so many times what is expected
MEAN_SCORES: Rules = ((r"seconds", "time"), (r"passes", None), (r"/ (low|high)$", "score"), (r"/ mean$", "score"))


@dataclass(frozen=True)
class Rerun:
    """A program that is run again: its options, how long that takes, and how its results are compared.

    Attributes
    ----------
    results : str
        File of results it is compared with.
    minutes : float
        Expected time on two cores.
    options : tuple of str, default=()
        Options beside --data and --output; FOLDER stands for a temporary folder.
    data : bool, default=True
        Whether it needs the data sets.
    torch : bool, default=False
        Whether it needs torch.
    rules : Rules, default=()
        Tolerances of its values, before the usual ones.
    parts : tuple of str, default=()
        Entries of the file that are compared; none stands for all.
    """

    results: str
    minutes: float
    options: tuple[str, ...] = ()
    data: bool = True
    torch: bool = False
    rules: Rules = ()
    parts: tuple[str, ...] = ()


RERUNS = (  # in this order as many as fit
    Rerun("eagle_simulation.json", 1, data=False),
    Rerun("prime_killed.json", 2, ("--runs", "4", "--rows", "600"), False, True, ((r"killed_at_step", None),)),
    Rerun("label_synonyms.json", 2),
    Rerun(
        "tree_vs_peers.json",
        3,
        ("--only", "eurlex-4k", "--methods", "longtail", "longtail-fast", "longtail-3", "--work", "FOLDER"),
        rules=((r"accuracy", "score"), (r"others_cores", None)),
        parts=("data", "summary"),
    ),
    Rerun(
        "tree_updates.json",
        8,
        rules=((r"_s / sd$", None), (r"cpu_s / mean$", "processor time"), (r"/ (mean|sd)$", "score")),
    ),
    Rerun("decision_settings.json", 4, rules=MEAN_SCORES),
    Rerun(
        "reading.json",
        2,
        ("--repeats", "5"),
        rules=((r"_vs_", "speed-up"), (r"over_result|multiple", "memory"), (r"seconds", "time")),
    ),
    Rerun("cold_start.json", 1, data=False),
    Rerun("gate_cost.json", 2, data=False, rules=((r"percent", "speed-up"),)),
    Rerun("serve_labels.json", 1, data=False),
    Rerun("fft_output.json", 2, data=False, torch=True, rules=((r"/ ms /", "time"), (r"faster|smaller", "speed-up"))),
    Rerun("decisions.json", 5, ("--seeds", "0", "1", "2", "--figure", "FOLDER/decisions.svg"), rules=MEAN_SCORES),
    Rerun("methods.json", 8),
    Rerun("radii.json", 4, ("--sets", "300", "--figure", "FOLDER/radii.svg")),
    Rerun("vectoriser.json", 4, rules=((r"ratios", "speed-up"), (r"_us /|_s /", "time"), (r"largest_diff", None))),
    Rerun("tree_profile.json", 3, rules=((r"share|times_the_floor|gb_per_s", "speed-up"),)),
)


def main() -> None:
    args = options()
    if args.page:
        PAGE.write_text(page_with(PAGE.read_text("utf-8"), read_results(args.output)), "utf-8")
        return
    print_list(shown())
    if args.list:
        return
    with tempfile.TemporaryDirectory() as folder:
        args.keep = args.keep or Path(folder)
        args.keep.mkdir(parents=True, exist_ok=True)
        run_all(args)


def run_all(args: argparse.Namespace) -> None:
    """Run what was chosen, compare it, and write the file of results after every program."""
    facts = start_facts(args, {"reruns": {}})
    facts["tolerances"] = {kind: tolerance.about for kind, tolerance in TOLERANCES.items()}
    facts["minutes_allowed"] = args.minutes
    facts["note"] = args.note or facts.get("note", "")
    chosen, left = choose(args)
    for rerun in chosen:
        before = facts["reruns"].get(rerun.results)
        facts["reruns"][rerun.results] = before or run_again(rerun, args.data, args.keep)
        compare_again(rerun, facts["reruns"][rerun.results], args.keep)
        summarise(facts, left)
        write_results(facts, args.output)
    summarise(facts, left)
    write_results(facts, args.output)
    print_agreement(facts)


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "reproduce.json", data="optional", resume=True)
    parser.add_argument("--list", action="store_true", help="only list the tables and figures")
    parser.add_argument("--page", action="store_true", help="only write the tables of docs/reproduce.md")
    parser.add_argument("--minutes", type=float, default=60, help="run what fits into so many minutes (default 60)")
    names = [rerun.results for rerun in RERUNS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="FILE", default=names, help="files of results")
    about = "folder for the new files of results; with --resume those in it are compared again, and not made again"
    parser.add_argument("--keep", type=Path, help=about)
    parser.add_argument("--note", default="", help="what else is worth knowing about this run")
    return parser.parse_args()


def choose(args: argparse.Namespace) -> tuple[list[Rerun], dict[str, str]]:
    """Return the programs to run, and why each of the others is left."""
    chosen: list[Rerun] = []
    left: dict[str, str] = {}
    minutes = args.minutes
    for rerun in RERUNS:
        if rerun.results not in args.only:
            left[rerun.results] = "not asked for"
        elif rerun.data and args.data is None:
            left[rerun.results] = "needs data"
        elif rerun.torch and importlib.util.find_spec("torch") is None:
            left[rerun.results] = "needs torch"
        elif rerun.minutes > minutes:
            left[rerun.results] = f"did not fit into {args.minutes:g} minutes"
        else:
            chosen.append(rerun)
            minutes -= rerun.minutes
    return chosen, left


def run_again(rerun: Rerun, data: Path | None, keep: Path) -> Facts:
    """Run one program, which writes into the folder `keep`, and return how it went."""
    program = ROOT / "benchmarks" / programs()[rerun.results].file
    load = round(os.getloadavg()[0], 2)
    limit = max(LEAST_SECONDS, 60 * MOST_TIMES * rerun.minutes)
    print(f"\n{rerun.results}: {shown_command(rerun)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        words = [word.replace("FOLDER", folder) for word in rerun.options]
        given = ["--data", str(data)] if rerun.data else []
        command = [sys.executable, str(program), *given, *words, "--output", str(keep / rerun.results)]
        started, used = time.perf_counter(), processor_seconds()
        code, said = finish(command, limit)
    out: Facts = {
        "command": shown_command(rerun),
        "minutes_expected": rerun.minutes,
        "minutes": round((time.perf_counter() - started) / 60, 2),
        "processor_minutes": round((processor_seconds() - used) / 60, 2),
        "processes_waiting_before": load,
        "exit_code": code,
    }
    if code:
        print(said[-3000:], file=sys.stderr, flush=True)
        out["failed"] = (said.strip().splitlines() or ["no word"])[-1]
    return out


def processor_seconds() -> float:
    """Return the processor time of all programs that were run and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def finish(command: Sequence[str], seconds: float) -> tuple[int, str]:
    """Run a command for at most so many seconds, and return its exit code and what it said; nothing of it is left."""
    process = subprocess.Popen(
        command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return -9, f"it took more than {seconds / 60:g} minutes"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return process.returncode, said


def compare_again(rerun: Rerun, out: Facts, keep: Path) -> None:
    """Compare what a program wrote with what is stored, and print how many values agree."""
    stored = read_results(RESULTS / rerun.results)
    machine = stored.get("machine")
    out["stored_from"] = machine.get("processor", "") if isinstance(machine, dict) else ""
    if "failed" in out or not (keep / rerun.results).exists():
        out |= {"compared": 0, "agree": 0} if "failed" in out else {}
        return
    out |= compare(stored, read_results(keep / rerun.results), rerun.rules, rerun.parts)
    print(f"{rerun.results}: {out['agree']} of {out['compared']} agree; {out['minutes']} minutes", flush=True)


def shown_command(rerun: Rerun) -> str:
    """Return the command without folders of this machine."""
    words = [programs()[rerun.results].command, *(("--data", "FOLDER") if rerun.data else ())]
    return " ".join([*words, *(shlex.quote(word) for word in rerun.options)])


def summarise(facts: Facts, left: dict[str, str]) -> None:
    """Bring the sums over all programs up to date."""
    reruns = facts["reruns"].values()
    by_tolerance: Facts = {}
    for rerun in reruns:
        for kind, count in rerun.get("by_tolerance", {}).items():
            total = by_tolerance.setdefault(kind, {"compared": 0, "agree": 0})
            for key in total:
                total[key] += count[key]
    facts["processor"] = processor()
    facts["left"] = {name: why for name, why in left.items() if name not in facts["reruns"]}
    facts["by_tolerance"] = {kind: by_tolerance[kind] for kind in TOLERANCES if kind in by_tolerance}
    facts["totals"] = {
        "programs": len(facts["reruns"]),
        "programs_that_failed": sum(1 for rerun in reruns if "failed" in rerun),
        "minutes": round(sum(rerun["minutes"] for rerun in reruns), 1),
        "processor_minutes": round(sum(rerun.get("processor_minutes", 0) for rerun in reruns), 1),
        "compared": sum(rerun["compared"] for rerun in reruns),
        "agree": sum(rerun["agree"] for rerun in reruns),
    }


# --- what is shown ----------------------------------------------------------------------------------------------------


def print_list(entries: Iterable[Shown]) -> None:
    """Print where every table and figure comes from."""
    rows = []
    for entry in entries:
        command, needs, takes = origin(entry)
        rows.append((f"{entry.page}: {entry.heading}", entry.what, command, needs, takes))
    show_table("Tables and figures of the docs", ("where", "what", "command", "needs", "takes"), rows, left=5)


def origin(entry: Shown) -> tuple[str, str, str]:
    """Return command, what it needs and the expected time."""
    if entry.source in programs():
        program: Program = programs()[entry.source]
        return program.command, program.needs, program.takes
    needs = "playwright and Chromium" if "screenshots" in entry.source else "nothing"
    return f"python {entry.source}" if entry.source.endswith(".py") else entry.source, needs, "a minute"


def print_agreement(facts: Facts) -> None:
    """Print how many values agree, by program, and which do not."""
    rows = [
        (name, f"{rerun['agree']} of {rerun['compared']}", rerun["minutes"]) for name, rerun in facts["reruns"].items()
    ]
    show_table("Run again", ("results", "agree", "minutes"), rows)
    for name, rerun in facts["reruns"].items():
        for entry in rerun.get("disagree", ()):
            print(f"{name}: {entry['where']}: {entry['stored']}, now {entry['found']} ({entry['tolerance']})")
    totals = facts["totals"]
    print(f"\n{totals['agree']} of {totals['compared']} values agree; {totals['minutes']} minutes")


# --- the page ---------------------------------------------------------------------------------------------------------


def page_with(text: str, facts: Facts) -> str:
    """Return the page with its made parts written anew."""
    for name, lines in (("agreement", agreement_lines(facts)), ("list", list_lines(shown()))):
        begin, end = MARKS.format(name, "begin"), MARKS.format(name, "end")
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = before + "\n".join([begin, "", *lines, "", end]) + after
    return text


def agreement_lines(facts: Facts) -> list[str]:
    """Return the tables of what was run again."""
    totals = facts["totals"]
    lines = [
        f"{totals['agree']:,} of {totals['compared']:,} values agree (`reproduce.json`): {totals['programs']} programs "
        f"in {totals['minutes']} minutes, on {facts['processor']}. {facts['note']}".rstrip(),
        "",
        "| tolerance | agree | compared |",
        "|---|---|---|",
        *(
            f"| {TOLERANCES[kind].about} | {count['agree']:,} | {count['compared']:,} |"
            for kind, count in facts["by_tolerance"].items()
        ),
        "",
        "| results | command | agree | compared | minutes | stored results are from |",
        "|---|---|---|---|---|---|",
    ]
    for name, rerun in facts["reruns"].items():
        cells = (f"`{name}`", f"`{rerun['command']}`", f"{rerun['agree']:,}", f"{rerun['compared']:,}")
        lines.append(f"| {' | '.join(cells)} | {rerun['minutes']:.1f} | {rerun['stored_from']} |")
    lines += ["", *disagreements(facts)]
    if facts["left"]:
        why = "; ".join(f"`{name}`: {reason}" for name, reason in facts["left"].items())
        lines += ["", f"Not run this time: {why}."]
    return lines


def disagreements(facts: Facts) -> list[str]:
    """Return the table of values that do not agree; those by the clock share a row, the file has them all."""
    lines = ["| results | value | stored | now | tolerance |", "|---|---|---|---|---|"]
    for name, rerun in facts["reruns"].items():
        apart = rerun.get("disagree", ())
        clock = [entry for entry in apart if entry["tolerance"] == "time"]
        for entry in [entry for entry in apart if entry["tolerance"] != "time"] + clock[:1]:
            more = f" and {len(clock) - 1} more" if entry["tolerance"] == "time" and len(clock) > 1 else ""
            values = (shown_value(entry["stored"]), shown_value(entry["found"]))
            lines.append(f"| `{name}` | {entry['where']}{more} | {values[0]} | {values[1]} | {entry['tolerance']} |")
        if rerun.get("more_that_disagree"):
            lines.append(f"| `{name}` | {rerun['more_that_disagree']} more | | | |")
        if "failed" in rerun:
            lines.append(f"| `{name}` | the program failed | | {rerun['failed']} | |")
    return lines if len(lines) > 2 else ["No value is farther from the stored one than its tolerance."]


def shown_value(value: object) -> str:
    """Return a value in few digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def list_lines(entries: Sequence[Shown]) -> list[str]:
    """Return the table of all tables and figures."""
    lines = ["| where | what | source | command | needs | takes |", "|---|---|---|---|---|---|"]
    for entry in entries:
        page = Path(entry.page)
        outside = page.name == "README.md"  # its headings are not those of the site's first page
        link = f"../{page}" if outside else f"{page.relative_to('docs')}#{anchor(entry.heading)}"
        title = f"{page.stem}: {entry.heading}".replace("|", "/")
        command, needs, takes = origin(entry)
        source = f"`{entry.source}`" if entry.source.endswith(".json") else ""
        what = f"`{entry.what}`" if "." in entry.what else entry.what
        lines.append(f"| [{title}]({link}) | {what} | {source} | `{command}` | {needs} | {takes} |")
    return lines


if __name__ == "__main__":
    main()
