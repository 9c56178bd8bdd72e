#!/usr/bin/env python3
"""Scripts/bench --against COMMIT: has something become slower since a commit?

Builds the commit in a folder of its own (.build/against), with the dependencies that it names. Then `zdc-bench --quick` measures the same rows
with both builds in turn, each round in the other order, because the speed of a machine changes within minutes. A row's ratio is the median of
the ratios of all rounds: above 1, this checkout needs more. For MB/s, the ratio is turned round.

Variables: ROUNDS=5.
Usage: Scripts/bench_pairs.py COMMIT [row ...]
"""
import sys

sys.dont_write_bytecode = True  # the folder of the scripts stays as it is

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from programs import BUILDING, say

ROUNDS = int(os.environ.get("ROUNDS", "5"))
ROWS = ["push-10k", "skeleton-10k", "pull-10k", "one-p50", "edit-p50"]
PRODUCTS = ("zdc-server", "zdc", "zdc-bench")


def output(*command, cwd="."):
    return subprocess.run([str(word) for word in command], cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def build(folder):
    """The folder of the programs."""
    env = dict(BUILDING, CC=str((folder / "Scripts/optimizing-clang").resolve()))
    for product in PRODUCTS:
        subprocess.run(["swift", "build", "-c", "release", "--product", product], cwd=folder, env=env, check=True)
    return folder / output("swift", "build", "-c", "release", "--show-bin-path", cwd=folder)


def check_out(commit):
    """The commit in a folder of its own, as in a clone."""
    folder = Path(".build/against").resolve()
    if not (folder / ".git").exists():
        subprocess.run(["git", "clone", "--quiet", ".", folder], check=True)
    subprocess.run(["git", "fetch", "--quiet", "origin", commit], cwd=folder, check=True)
    subprocess.run(["git", "checkout", "--quiet", "--detach", "FETCH_HEAD"], cwd=folder, check=True)
    return folder


def measure(bin_folder, rows):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [bin_folder / "zdc-bench", "--quick", "--json", file.name, "--only", *rows]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return {figure["id"]: figure for figure in json.loads(Path(file.name).read_text())}


def ratio(now, before):
    more = now["value"] / before["value"]
    return 1 / more if now["unit"].endswith("/s") else more


def one_round(number, now, then, rows):
    """The figures of this checkout and of the commit."""
    if number % 2:
        before = measure(then, rows)
        return measure(now, rows), before
    return measure(now, rows), measure(then, rows)


def main():
    commit, rows = output("git", "rev-parse", sys.argv[1]), sys.argv[2:] or ROWS
    folder = check_out(commit)
    then, now = build(folder), build(Path("."))
    rounds = []
    for number in range(ROUNDS):
        rounds.append(one_round(number, now, then, rows))
        say(f"round {number + 1} of {ROUNDS}")
    print(f"{'row':16}{commit[:8]:>14}{'now':>14}{'ratio':>8}   all ratios")
    for row in rows:
        pairs = [(now[row], before[row]) for now, before in rounds]
        ratios = sorted(ratio(*pair) for pair in pairs)
        was, is_now = (statistics.median(pair[side]["value"] for pair in pairs) for side in (1, 0))
        unit = pairs[0][0]["unit"]
        print(f"{row:16}{was:>10.4g} {unit:3}{is_now:>10.4g} {unit:3}{statistics.median(ratios):>8.3f}   {' '.join(f'{r:.3f}' for r in ratios)}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main()
