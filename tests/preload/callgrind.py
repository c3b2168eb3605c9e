"""Instructions of one object's own functions, as valgrind counts them: the same on each run, whatever else the machine does."""

import re
import subprocess

FEW, MANY = 20, 220  # calls of two runs: what the longer one has more is the calls' own


def stripped(file, directory):
    """A copy that valgrind reads whoever compiled it: clang's debug information it does not."""
    copy = directory / file.name
    subprocess.run(["objcopy", "--strip-debug", file, copy], check=True, timeout=50)
    return copy


def costs(report, name):
    """(whether it is one of the object's own, its words) of each line that tells what a place in the code cost."""
    names, ours, called = {}, False, False
    for line in report.read_text().splitlines():
        kind, _, rest = line.partition("=")
        if kind in ("ob", "cob"):
            number, _, path = rest.partition(" ")
            names.setdefault(number, path)
            ours = names[number].endswith(name) if kind == "ob" else ours
        elif kind == "calls":
            called = True  # the next line tells what the callee took
        elif re.match(r"[+*\-\d]", line):
            yield ours and not called, line.split()
            called = False


def instructions_of(report, name):
    """Of what callgrind counted, those of the object's own functions."""
    return sum(int(words[1]) for ours, words in costs(report, name) if ours)


def per_call(run, report):
    """Of libbreaker.so, for each call that `run(count, tracer)` makes."""
    counts = []
    for number in (FEW, MANY):
        run(number, ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={report}"])
        counts.append(instructions_of(report, "libbreaker.so"))
    return (counts[1] - counts[0]) / (MANY - FEW)


def of_posts(program, arguments, environment, library, directory):
    """Of libbreaker.so, for each POST of a bench program that makes as many as it is told."""
    program, library = stripped(program, directory), stripped(library, directory)
    environment = {**environment, "LD_PRELOAD": str(library)}

    def run(count, tracer):
        done = subprocess.run([*tracer, program, *map(str, arguments)], env=environment, input=f"{count}\n",
                              capture_output=True, text=True, timeout=50)
        took, status, marked, connects = map(int, done.stdout.split())
        assert (done.returncode, done.stderr, status, marked) == (0, "", 200, 0), done
        assert connects == (count if "fresh" in arguments else 1), done

    return per_call(run, directory / "callgrind")


def check_posts(program, target, ceilings, fresh, provider, breaker_env, directory, name=None):
    """That a POST of `program` (`target`: its words) costs no more than the ceiling, of `ceilings` for a kept connection and for
    new ones: on connections of their own (`fresh`) they cost more, so more would be seen. `name`: what the provider is called."""
    spent = of_posts(program, [*target, *(["fresh"] if fresh else [])], breaker_env.environment, breaker_env.library, directory)
    assert breaker_env.calls(provider.key("bench", name))["success"] == FEW + MANY
    kept, new = ceilings
    assert (kept if fresh else 500) < spent <= (new if fresh else kept), spent
