"""Measures the sample app's pages in a real Chromium. Run by `Scripts/todo figures`, with the Python that it prepares.

Alice has 50 lists with 5,000 tasks, and shares one of them with Bob. Each has a process of `zdc-todo serve`, with its database and
its port, and a page that shows the list. Alice ticks tasks with the mouse. All times are of this machine's one clock.
Prints a table and writes .build/todo/figures.json. It has no opinion about the figures.
"""
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from programs import ROOT, Server, end, say, table
from todo_browser import SHOTS, Todo, launch, peak_memory

PAINTS, TICKS = int(os.environ.get("PAINTS", 20)), int(os.environ.get("TICKS", 120))

# Notes when a click arrives, and when the frame that follows it has been painted.
FOLLOW_CLICKS = """() => {
  window.clicks = [];
  window.now = () => performance.timeOrigin + performance.now();
  window.painted = done => requestAnimationFrame(() => { const channel = new MessageChannel();
    channel.port1.onmessage = () => done(now()); channel.port2.postMessage(0); });
  document.addEventListener('click', event => {
    if (!event.target.matches('[data-submit]')) return;
    const click = {at: performance.timeOrigin + event.timeStamp};
    window.clicks.push(click);
    painted(time => { click.painted = time; });
  }, true);
}"""
# Notes when the document shows another state of a task than before, and when that has been painted.
FOLLOW_TASK = """task => {
  window.seen = [];
  window.now = () => performance.timeOrigin + performance.now();
  const isDone = () => document.getElementById(task)?.classList.contains('is-done');
  let last = isDone();
  new MutationObserver(() => {
    if (isDone() === last || isDone() === undefined) return;
    last = isDone();
    const change = {at: now()};
    window.seen.push(change);
    requestAnimationFrame(() => { const channel = new MessageChannel();
      channel.port1.onmessage = () => { change.painted = now(); }; channel.port2.postMessage(0); });
  }).observe(document.getElementById('app'), {subtree: true, childList: true, attributes: true});
}"""
PAINT = """() => new Promise(done => {
  const times = {};
  const observe = (type, note) => new PerformanceObserver(list => {
    list.getEntries().forEach(note);
    if (times.first && times.largest) done(times);
  }).observe({type, buffered: true});
  observe('paint', entry => { if (entry.name === 'first-contentful-paint') times.first = entry.startTime; });
  observe('largest-contentful-paint', entry => { times.largest = entry.startTime; });
})"""
SHIFT = """() => new Promise(done => {
  let sum = 0;
  const observer = new PerformanceObserver(list => list.getEntries().forEach(entry => { sum += entry.value; }));
  observer.observe({type: 'layout-shift', buffered: true});
  setTimeout(() => done(sum), 200);
})"""


def percentiles(times):
    times = sorted(times)
    at = lambda share: round(times[min(int(share * len(times)), len(times) - 1)], 1)
    return {"p50": at(0.5), "p99": at(0.99), "count": len(times)}


def import_lists(alice, work):
    lines = [f"task {number} +List{number % 50:02}" for number in range(5_000)]
    (work / "large.txt").write_text("\n".join(lines))
    alice.command("import", work / "large.txt", "--offline")
    alice.page.goto(alice.origin)
    expect(alice.page.locator("#status")).to_contain_text("Everything is in the cloud", timeout=600_000)


def share_list(alice, bob):
    """Bob accepts Alice, and then her list."""
    user, = json.loads(bob.command("account", "list", "--json"))
    other, = json.loads(alice.command("account", "list", "--json"))
    alice.command("share", "List07", user)
    bob.page.goto(f"{bob.origin}/account/{user}/invitations")
    bob.page.get_by_role("button", name=f"Accept messages from {other[:8]}").click(timeout=60_000)
    bob.page.get_by_role("button", name="Accept List07").click(timeout=60_000)
    expect(bob.page.locator("#open > .task[data-task]")).to_have_count(100, timeout=120_000)


def measure_paints(alice):
    """First and largest paint of the lists and of a list, each in a new navigation; and how far the layout shifts."""
    alice.page.goto(alice.origin)
    links = [alice.page.url, alice.page.url + "/" + "/".join(
        alice.page.get_by_role("link", name="List07").get_attribute("href").split("/")[-2:])]
    figures, shift = {}, 0.0
    for name, link in zip(("lists", "a list"), links):
        times = {"first": [], "largest": []}
        for _ in range(PAINTS):
            alice.page.goto(link)
            paint = alice.page.evaluate(PAINT)
            for kind in times:
                times[kind].append(paint[kind])
            shift = max(shift, alice.page.evaluate(SHIFT))
        for kind in times:
            figures[f"{kind} paint, {name} (ms)"] = percentiles(times[kind])
    return figures, round(shift, 4)


def processor_time(process):
    """The milliseconds that a process has computed, on all cores. A busy machine changes it little."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1_000 / os.sysconf("SC_CLK_TCK")


def measure_ticks(alice, bob, server):
    """Alice ticks the first task and opens it again, and Bob's page follows."""
    alice.page.get_by_role("link", name="List07").click()
    row = alice.page.locator("#open > .task").first
    title, task = row.locator(".name").inner_text(), "#" + row.get_attribute("id")
    theirs = bob.row(title).get_attribute("id")
    alice.page.evaluate(FOLLOW_CLICKS)
    bob.page.evaluate(FOLLOW_TASK, theirs)
    own, dom, painted = [], [], []
    processes = {"Alice's process": alice.process, "Bob's process": bob.process, "server": server.process}
    before = {name: processor_time(process) for name, process in processes.items()}
    for number in range(TICKS):
        alice.page.locator(task).get_by_role("checkbox").click()
        bob.page.wait_for_function("count => window.seen.length > count && window.seen.at(-1).painted", arg=number, timeout=60_000)
        click, change = alice.page.evaluate("window.clicks.at(-1)"), bob.page.evaluate("window.seen.at(-1)")
        own.append(click["painted"] - click["at"])
        dom.append(change["at"] - click["at"])
        painted.append(change["painted"] - click["at"])
        time.sleep(0.2)
    used = {
        f"a tick, processor time of {name} (ms)": round((processor_time(process) - before[name]) / TICKS, 1)
        for name, process in processes.items()}
    return {
        "a tick, own next frame (ms)": percentiles(own), "a tick, other page's document (ms)": percentiles(dom),
        "a tick, painted on the other page (ms)": percentiles(painted), **used}


def peaks(alice, bob, server):
    return {
        "peak memory, Alice's process (MiB)": peak_memory(alice), "peak memory, Bob's process (MiB)": peak_memory(bob),
        "peak memory, server (MiB)": server.peak() // 1024}


def machine(browser):
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "processor": cpu[1] if cpu else platform.machine(), "cores": os.cpu_count(),
        "load before": os.getloadavg()[0], "chromium": browser.version}


def measure(alice, bob, server, work):
    import_lists(alice, work)
    paints, shift = measure_paints(alice)
    bob.page.goto(bob.origin)
    share_list(alice, bob)
    ticks = measure_ticks(alice, bob, server)
    return {**paints, "layout shift, at most": shift, **ticks, **peaks(alice, bob, server)}


def report(figures):
    SHOTS.mkdir(exist_ok=True)
    (SHOTS / "figures.json").write_text(json.dumps(figures, indent=2) + "\n")
    text = lambda value: f"p50 {value['p50']:8.1f}   p99 {value['p99']:8.1f}   of {value['count']}" if isinstance(value, dict) else value
    table([(name, text(value)) for name, value in figures.items()])
    say(f"todo: these figures are in {SHOTS.relative_to(ROOT)}/figures.json")


def main():
    bin_folder = Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="zdc-todo-") as folder, sync_playwright() as playwright, ExitStack() as stack:
        work = Path(folder)
        server = Server(bin_folder, work)
        stack.callback(server.stop)
        browser = launch(playwright)
        facts = machine(browser)
        todos = []
        for name in ("alice", "bob"):
            todo = Todo(bin_folder, work / name, server.url)
            stack.callback(end, todo.process)
            todo.command("account", "create")
            todo.page = todo.open(browser)
            todos.append(todo)
        figures = measure(*todos, server, work)
    report({**facts, "build": bin_folder.name, **figures})


if __name__ == "__main__":
    main()
