"""Counts test results.

tally.py go COUNTS      reads `go test -json` from stdin, shows what fails, writes COUNTS
tally.py junit COUNTS   reads a JUnit file from stdin, writes COUNTS
tally.py told COUNTS    reads output that ends with "N passed, N failed", shows it, writes COUNTS
tally.py sum COUNTS...  adds up; its last line is "N passed, N failed"
Exit status 1 if anything failed or nothing ran.
"""

import json
import os
import re
import sys
import xml.etree.ElementTree as ET


def go(lines):
    """A package that fails without a failing test of its own (it did not compile,
    crashed, ran out of time) is one failure."""
    passed = failed = skipped = 0
    output, broken = {}, {}
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            print(line, end="", file=sys.stderr)
            continue
        package, test, action = event.get("Package") or event.get("ImportPath", ""), event.get("Test"), event["Action"]
        key = (package, test)
        if action in ("output", "build-output"):
            output.setdefault(key, []).append(event["Output"])
        elif action == "pass":
            passed += test is not None
            output.pop(key, None)
            if test is None:
                print(f"ok    {package}", file=sys.stderr)
        elif action == "skip":
            skipped += test is not None
            if test is not None:
                print(f"SKIP  {package} {test}", file=sys.stderr)
            output.pop(key, None)
        elif action in ("fail", "build-fail"):
            print("".join(output.pop(key, [])), end="", file=sys.stderr)
            if test is not None:
                failed += 1
                broken[package] = True
            elif action == "fail":
                failed += not broken.get(package)
                print(f"FAIL  {package}", file=sys.stderr)
    return passed, failed, skipped


def junit(text):
    """A suite that left no whole report has failed."""
    passed = failed = skipped = 0
    try:
        cases = ET.fromstring(text).iter("testcase")
    except ET.ParseError as err:
        print(f"FAIL  no report: {err}", file=sys.stderr)
        return 0, 1, 0
    for case in cases:
        children = {child.tag for child in case}
        if children & {"failure", "error"}:
            failed += 1
        elif "skipped" in children:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def told(lines):
    """Suites that count for themselves end with "N passed, N failed"; one that does not
    say so has failed."""
    counts = (0, 1, 0)
    for line in lines:
        print(line, end="", file=sys.stderr)
        result = re.match(r"(\d+) passed, (\d+) failed$", line)
        if result:
            counts = (int(result[1]), int(result[2]), 0)
    return counts


def main(mode, *paths):
    if mode == "sum":
        counts = [json.load(open(p)) for p in paths if os.path.exists(p)]
        passed, failed, skipped = (sum(c[i] for c in counts) for i in range(3))
        if skipped:
            print(f"{skipped} skipped", file=sys.stderr)
        print(f"{passed} passed, {failed} failed")
        return failed == 0 and passed > 0
    counts = go(sys.stdin) if mode == "go" else told(sys.stdin) if mode == "told" else junit(sys.stdin.read())
    with open(paths[0], "w") as f:
        json.dump(counts, f)
    return counts[1] == 0


sys.exit(0 if main(*sys.argv[1:]) else 1)
