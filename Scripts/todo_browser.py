"""Drives the sample app's pages in a real Chromium, as users would. Run by `Scripts/todo browser`, with the Python that it prepares.

Three processes of `zdc-todo serve`, each with its database and its port, and a real server: two devices of Alice, and one of Bob.
Fails on any console error, any request to another origin, and any finding of axe. Screenshots are left in .build/todo.
"""
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from programs import ROOT, Device, Proxy, Server, check, end, failures, free_port, say

SHOTS = ROOT / ".build/todo"
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 800}
HOSTILE = '<img src=x onerror="document.title=1">\u202egpj.exe\u200b'


class Todo:
    """One process with a page, and a browser that shows it."""

    def __init__(self, bin_folder, folder, server_url):
        self.program, self.folder, self.url = bin_folder / "zdc-todo", folder, server_url
        self.port = free_port()
        self.process = subprocess.Popen(
            [self.program, "serve", "--json", "--port", str(self.port), "--folder", folder, "--server", server_url],
            stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            end(self.process)
            sys.exit(f"zdc-todo serve did not start; exit code {self.process.returncode}")
        self.link = json.loads(line)["link"]
        self.origin = f"http://127.0.0.1:{self.port}"
        self.problems = []

    def open(self, browser, **options):
        page = browser.new_context(viewport=DESKTOP, **options).new_page()
        page.on("console", lambda message: message.type in ("error", "warning") and self.problems.append(message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: request.url.startswith(self.origin) or self.problems.append(request.url))
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(self.link)
        return page

    def command(self, *arguments, stdin=""):
        command = [self.program, *arguments, "--folder", self.folder, "--server", self.url]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True).stdout

    def row(self, title):
        return self.page.locator(".task", has=self.page.get_by_role("checkbox", name=title, exact=True))

    def titles(self):
        return self.page.locator(".task .name").all_inner_texts()

    def add(self, title, priority="normal"):
        self.page.get_by_label("New task", exact=True).fill(title)
        self.page.get_by_label("Priority", exact=True).select_option(priority)
        self.page.get_by_role("button", name="Add", exact=True).click()
        expect(self.row(title)).to_be_visible()


def launch(playwright):
    # In a container, everything runs as root, and /dev/shm has only 64 MiB.
    options = ["--no-sandbox", "--disable-dev-shm-usage"] if os.geteuid() == 0 else []
    return playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=options)


class Gate(Proxy):
    """Between a device and the server. While it is closed, requests for content get no answer; all others do."""

    CONTENT = re.compile(rb"(POST|GET) /v1/trees/\S+/(contents|blobs/\S+) HTTP")
    is_closed = True

    def pump(self, source, target, is_up):
        try:
            while data := source.recv(65_536):
                if is_up and self.is_closed and self.CONTENT.search(data):
                    break
                target.sendall(data)
        except OSError:
            pass
        for end_of_it in (source, target):
            end_of_it.close()


def shows(todo, wanted, what):
    try:
        todo.page.wait_for_function(
            "wanted => JSON.stringify([...document.querySelectorAll('.task .name')].map(e => e.innerText)) === JSON.stringify(wanted)",
            arg=wanted, timeout=30_000)
    except Exception:
        pass
    check(todo.titles() == wanted, f"{what}: {todo.titles()}" if todo.titles() != wanted else what)


def create_account(todo):
    page = todo.page
    screenshots(todo, "welcome")
    page.get_by_role("button", name="Create an account").click()
    words = page.locator(".words li").all_inner_texts()
    check(len(words) == 24, "24 words are shown")
    screenshots(todo, "words")
    page.get_by_role("button", name="I have written them down").click()
    for field in page.locator("input").all():
        field.fill("wrong")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("alert")).to_be_visible()
    screenshots(todo, "check")
    for field in page.locator("input").all():
        field.fill(words[int(field.get_attribute("name")[1:])])
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("heading", name="Create your first list")).to_be_visible()
    return words


def log_in(todo, words):
    todo.page.get_by_label("The 24 words").fill(" ".join(words))
    todo.page.get_by_role("button", name="Log in").click()


def new_list(todo, title):
    todo.page.get_by_label("Title of the new list").fill(title)
    todo.page.keyboard.press("Enter")
    expect(todo.page.get_by_role("heading", name=title, exact=True)).to_be_visible()


def accessible(page, name):
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    for violation in found:
        say(f"    {violation['id']}: {violation['help']}: {violation['nodes'][0]['html'][:160]}")
    check(not found, f"axe finds nothing on the page {name}")


def screenshots(todo, name):
    page = todo.page
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width, size in (("desktop", DESKTOP), ("phone", PHONE)):
            page.set_viewport_size(size)
            page.screenshot(path=SHOTS / f"{name}-{width}-{scheme}.png")
            accessible(page, f"{name}, {width}, {scheme}")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(DESKTOP)


def make_pictures(work):
    """Two photos, made with vips."""
    subprocess.run(["vips", "gaussnoise", work / "noise.v", "1600", "1200", "--mean", "140", "--sigma", "50"], check=True)
    subprocess.run(["vips", "gaussblur", work / "noise.v", work / "large.jpg", "12"], check=True)
    subprocess.run(["vips", "black", work / "black.jpg", "800", "600", "--bands", "3"], check=True)
    (work / "broken.jpg").write_bytes((work / "large.jpg").read_bytes()[:3000])


# --- The story ---


def lists_and_tasks(alice, phone):
    new_list(alice, "Groceries")
    for title, priority in (("milk", "normal"), ("bread", "high"), ("jam", "low")):
        alice.add(title, priority)
    phone.page.goto(phone.origin)
    phone.page.get_by_role("link", name="Groceries").click()
    shows(phone, ["milk", "bread", "jam"], "the second device shows the list, without a reload")
    phone.row("bread").get_by_role("checkbox").check()
    shows(alice, ["milk", "jam", "bread"], "a task that is ticked on one page is ticked on the other")
    expect(alice.row("bread").get_by_role("checkbox")).to_be_checked()
    phone.row("bread").get_by_role("checkbox").uncheck()
    shows(alice, ["milk", "bread", "jam"], "and opened again")


def order(alice, phone):
    handle = alice.page.get_by_role("button", name="Move milk")
    handle.focus()
    alice.page.keyboard.press("ArrowDown")
    shows(phone, ["bread", "milk", "jam"], "the arrow keys move a task")
    alice.page.keyboard.press("ArrowDown")
    shows(phone, ["bread", "jam", "milk"], "the focus stays on it")
    alice.row("milk").drag_to(alice.row("bread"), target_position={"x": 40, "y": 4})
    shows(phone, ["milk", "bread", "jam"], "so does the mouse")
    drag = """isRefused => { const [first, , last] = document.querySelectorAll('#open > .task');
      const fire = (type, row) => row.dispatchEvent(new DragEvent(type, {bubbles: true, cancelable: true,
        dataTransfer: new DataTransfer(), clientY: row.getBoundingClientRect().bottom - 1}));
      fire('dragstart', first); fire('dragover', last); if (isRefused) fire('drop', first); fire('dragend', first); }"""
    alice.page.evaluate(drag, False)
    check(alice.titles() == ["milk", "bread", "jam"], "a task that is dragged and not dropped returns to its place")
    alice.page.route("**/move", lambda route: route.abort())
    alice.page.evaluate(drag, True)
    expect(alice.page.get_by_role("status")).to_contain_text("not running")
    alice.page.unroute("**/move")
    check(alice.titles() == ["milk", "bread", "jam"], "and so does one whose move is not stored")
    alice.problems.clear()  # the request that was aborted


def requests(alice, phone):
    """Requests of one form are sent one after the other. A failed one does not replace what the user types next."""
    page, waiting = alice.page, []
    page.route("**/done", lambda route: waiting.append(route))
    box = alice.row("jam").get_by_role("checkbox")
    for _ in range(2):
        box.click()
    page.evaluate("() => new Promise(requestAnimationFrame)")
    check([route.request.post_data for route in waiting] == ["done=1"], "the second tick of a box waits for the answer to the first")
    waiting[0].continue_()
    page.wait_for_function("() => sending.size === 1")
    for _ in range(100):
        if len(waiting) == 2:
            break
        page.wait_for_timeout(50)
    check(not waiting[1].request.post_data, "and is sent then")
    waiting[1].continue_()
    page.wait_for_function("() => sending.size === 0")
    page.unroute("**/done")
    shows(phone, ["milk", "bread", "jam"], "so the task is open in the end")
    page.route("**/tasks", lambda route: waiting.append(route))
    field = page.get_by_label("New task", exact=True)
    field.fill("oats")
    page.keyboard.press("Enter")
    expect(field).to_have_value("")
    field.fill("rice")
    waiting[2].abort()
    expect(page.get_by_role("status")).to_contain_text("“oats” was not stored")
    expect(field).to_have_value("rice")
    field.fill("")
    page.unroute("**/tasks")
    alice.problems.clear()  # the request that was aborted
    check(True, "a task that is not stored is shown, and what the user types stays")


def hidden(alice, phone):
    """A hidden page has no connection, so that other pages get one of the few that a browser opens."""
    hide = """isHidden => { Object.defineProperty(document, 'hidden', {configurable: true, get: () => isHidden});
      document.dispatchEvent(new Event('visibilitychange')); return source.readyState; }"""
    check(alice.page.evaluate(hide, True) == 2, "a hidden page closes its connection")
    phone.row("jam").get_by_role("checkbox").check()
    expect(phone.page.locator("#done .task")).to_have_count(1)
    alice.page.evaluate(hide, False)
    expect(alice.row("jam").get_by_role("checkbox")).to_be_checked()
    phone.row("jam").get_by_role("checkbox").uncheck()
    shows(alice, ["milk", "bread", "jam"], "and shows everything again once the user looks at it")


def downloads_restart(words, server, browser, bin_folder, work):
    """A new device knows the tree, and gets no content before the server was away and is back."""
    with Gate(server.port) as gate:
        desk = Todo(bin_folder, work / "desk", gate.url)
        try:
            desk.page = desk.open(browser)
            log_in(desk, words)
            desk.page.get_by_role("link", name="Groceries").click()
            expect(desk.page.locator(".task .check.skeleton")).to_have_count(3)
            screenshots(desk, "arriving")
            with no_server(server):
                expect(desk.page.locator("#status")).to_contain_text("Offline")
                gate.is_closed = False
            shows(desk, ["milk", "bread", "jam"], "marked downloads restart when the server is back, without a reload")
            check(not desk.problems, f"and no console error {desk.problems[:3] or ''}")
        finally:
            end(desk.process)


def press_until(page, selector):
    """Presses the tab key until the focus is on an element."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement?.matches(selector)", selector):
            return
    raise SystemExit(f"the tab key does not reach {selector}")


def by_keyboard(alice, phone):
    """Nothing but the keyboard: skip the lists, tick a task, move it, open it, and go back."""
    page = alice.page
    page.reload()
    press_until(page, ".skip")
    page.keyboard.press("Enter")
    press_until(page, "input[aria-label=bread]")
    page.keyboard.press("Space")
    shows(phone, ["milk", "jam", "bread"], "the space bar ticks a task")
    expect(alice.row("bread").get_by_role("checkbox")).to_be_focused()
    page.keyboard.press("Space")
    shows(phone, ["milk", "bread", "jam"], "and opens it again, with the focus still on it")
    press_until(page, ".handle[aria-label^='Move bread']")
    page.keyboard.press("ArrowUp")
    shows(phone, ["bread", "milk", "jam"], "an arrow key moves it")
    page.keyboard.press("ArrowDown")
    shows(phone, ["milk", "bread", "jam"], "and back")
    page.evaluate("""() => { const [html, handle] = [app.innerHTML, document.activeElement.outerHTML];
      show(html.replace(handle, '<span class="badges"></span>' + handle)); show(html); }""")
    expect(page.locator(".handle[aria-label^='Move bread']")).to_be_focused()
    check(True, "the handle keeps the focus when a badge comes and goes")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#f-title")).to_have_value("bread")
    press_until(page, "a.back")
    page.keyboard.press("Enter")
    expect(alice.row("bread")).to_be_visible()
    check(True, "the return key opens a task, and returns to the list")


def reduced_motion(alice):
    moving = """() => [...document.querySelectorAll('*')].flatMap(e => [null, '::before', '::after'].map(p => getComputedStyle(e, p)))
      .filter(style => style.animationName !== 'none' || style.transitionDuration !== '0s').length"""
    check(alice.page.evaluate(moving) > 0, "a tick and a ring move")
    alice.page.emulate_media(reduced_motion="reduce")
    check(alice.page.evaluate(moving) == 0, "and nothing moves for users who prefer that")
    alice.page.emulate_media(reduced_motion="no-preference")


def undo_deletion(alice, phone):
    page = alice.page
    alice.add("eggs")
    for is_undone in (True, False):
        alice.row("eggs").locator("a.body").click()
        page.get_by_role("button", name="Delete the task").click()
        shows(phone, ["milk", "bread", "jam"], "a task is deleted")
        undo = page.get_by_role("status").get_by_role("button", name="Undo")
        expect(undo).to_be_visible()
        if is_undone:
            undo.focus()  # until then, the message disappears after some seconds
            screenshots(alice, "deleted")
            undo.click()
            expect(page.get_by_role("status")).to_contain_text("Restored")
            shows(phone, ["milk", "bread", "jam", "eggs"], "and restored from the message that says so")
    page.reload()
    expect(alice.row("jam")).to_be_visible()
    expect(undo).to_have_count(0)
    check(True, "a reload does not offer that again")


def open_forms(alice, phone):
    for todo in (alice, phone):
        todo.row("jam").locator("a.body").click()
    alice.page.locator("#f-details").fill("strawberry")
    phone.page.locator("#f-title").fill("marmalade")
    alice.page.get_by_role("button", name="Save").click()
    expect(phone.page.locator("#f-details")).to_have_value("strawberry")
    expect(phone.page.locator("#f-title")).to_have_value("marmalade")
    check(True, "an open form shows the changes of the other device, and keeps what the user has typed")
    phone.page.get_by_role("button", name="Save").click()
    expect(alice.page.locator("#f-title")).to_have_value("marmalade")
    expect(alice.page.locator("#f-details")).to_have_value("strawberry")
    check(True, "a form changes only the fields that the user changed")
    alice.page.locator("#f-title").fill("jam")
    alice.page.locator("#f-details").fill("")
    alice.page.get_by_role("button", name="Save").click()
    expect(phone.page.locator("#f-title")).to_have_value("jam")
    for todo in (alice, phone):
        todo.page.get_by_role("link", name="Groceries").first.click()


def typed_text(alice, phone):
    """What the user types in a task is not lost when another device deletes the task."""
    alice.add("eggs")
    alice.row("eggs").locator("a.body").click()
    alice.page.locator("#f-details").fill("a long text")
    phone.row("eggs").locator("a.body").click()
    phone.page.get_by_role("button", name="Delete the task").click()
    expect(alice.page.get_by_role("status")).to_contain_text("was deleted or moved")
    expect(alice.page.locator("#f-details")).to_have_value("a long text")
    alice.page.get_by_role("link", name="Groceries").first.click()
    for todo in (alice, phone):
        shows(todo, ["milk", "bread", "jam"], "a text that is being typed stays when its task is deleted")


def stopped(todo):
    """The page without its process."""
    todo.page.set_viewport_size(DESKTOP)
    todo.page.get_by_role("link", name="Groceries").first.click()
    box = todo.row("Dark bread").get_by_role("checkbox")
    expect(box).not_to_be_checked()
    end(todo.process)
    expect(todo.page.get_by_role("status")).to_contain_text("Not connected")
    box.click()
    expect(todo.page.get_by_role("status")).to_contain_text("not running")
    expect(box).not_to_be_checked()
    check(True, "without its process, the page says so, and a tick is reset")


def photos(alice, phone, work):
    page = alice.page
    alice.row("milk").locator("a.body").click()
    page.locator("#f-photo").set_input_files(work / "broken.jpg")
    expect(page.get_by_role("status")).to_contain_text("damaged")
    alice.problems.clear()  # the refusal itself
    page.locator("#f-photo").set_input_files(work / "large.jpg")
    expect(page.locator("#photo")).to_be_visible()
    phone.row("milk").locator("a.body").click()
    full = phone.page.locator("#photo img")
    expect(full).to_be_visible()
    phone.page.wait_for_function("() => document.querySelector('#photo img').naturalWidth === 256")
    phone.page.get_by_role("button", name="Show the full photo").click()
    phone.page.wait_for_function("() => document.querySelector('#photo img').naturalWidth === 1600")
    check(True, "the other device shows the thumbnail, then the full photo")
    screenshots(alice, "task")
    page.locator("#f-photo").set_input_files(work / "black.jpg")
    phone.page.wait_for_function("() => document.querySelector('#photo img').naturalWidth !== 1600")
    phone.page.get_by_role("button", name="Remove photo").click()
    expect(page.locator("#photo")).to_have_count(0)
    check(True, "a photo is replaced, and removed by the other device")
    for todo in (alice, phone):
        todo.page.get_by_role("link", name="Groceries").first.click()


@contextmanager
def no_server(server):
    end(server.process)
    yield
    command = server.process.args
    server.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def edit(todo, task, **fields):
    todo.row(task).locator("a.body").click()
    for label, value in fields.items():
        field = todo.page.locator(f"#f-{label}")
        field.select_option(value) if label == "priority" else field.fill(value)
    todo.page.get_by_role("button", name="Save").click()
    expect(todo.page.get_by_role("status")).to_contain_text("Saved")
    todo.page.get_by_role("link", name="Groceries").first.click()


def conflicts(alice, phone, server):
    with no_server(server):
        edit(alice, "milk", title="oat milk", details="from the market")
        edit(phone, "milk", priority="high", title="soy milk")
        expect(alice.page.locator("#status")).to_contain_text("Offline", timeout=15_000)
        expect(alice.row("oat milk").locator(".badge.pending")).to_have_count(1)
        alice.page.goto(alice.page.url)
        shows(alice, ["oat milk", "bread", "jam"], "without a server, the page shows what this device has, also after a reload")
        screenshots(alice, "offline")
        alice.page.get_by_role("link", name="Groceries").first.click()
    for todo in (alice, phone):
        expect(todo.page.locator("#status")).to_contain_text("Everything is in the cloud", timeout=60_000)
    alice.page.wait_for_function("() => document.querySelector('.task.high .details')", timeout=20_000)
    check(alice.titles() == phone.titles() and "market" in phone.page.locator(".task .details").first.inner_text(),
          "edits of different fields are merged")
    loser = phone if phone.page.locator(".badge.merged").count() else alice
    expect(loser.page.locator(".task .badge.merged")).to_have_count(1)
    check(True, "of two titles, one is shown on both, and the device that lost says so")
    lost = "soy milk" if loser is phone else "oat milk"
    loser.page.get_by_role("link", name="Activity").click()
    screenshots(loser, "activity")
    loser.page.locator("#activity li", has_text="merged").get_by_role("button", name="Undo").click()
    loser.page.get_by_role("link", name="Groceries").first.click()
    for todo in (alice, phone):
        shows(todo, [lost, "bread", "jam"], "the other title is restored on both")


def hostile(alice, phone):
    alice.add("x")
    edit(alice, "x", title=HOSTILE)
    shown = phone.page.locator(".task .name", has_text="onerror")
    expect(shown).to_have_text('<img src=x onerror="document.title=1">gpj.exe')
    check(phone.page.title().startswith("Groceries"), "a title that is HTML is text, without what could deceive")
    phone.page.locator("a.body", has_text="onerror").click()
    phone.page.get_by_role("button", name="Delete the task").click()
    shows(alice, [alice.titles()[0], "bread", "jam"], "deleted by one, gone on the other")


def server_sees(alice):
    alice.row("bread").locator("a.body").click()
    alice.page.get_by_role("link", name="What the server sees").click()
    text = alice.page.locator("main").inner_text()
    check("bread" in text and re.search(r"([0-9a-f]{2} ){15}", text) is not None, "what the server sees is beside what I see")
    screenshots(alice, "sealed")
    alice.page.get_by_role("link", name="Back").click()
    alice.page.get_by_role("link", name="Is it in the cloud?").click()
    expect(alice.page.locator("main > p", has_text="All changes of this task are in the cloud")).to_be_visible()
    screenshots(alice, "explain")
    alice.page.goto(alice.origin)
    alice.page.get_by_role("link", name="Groceries").first.click()


def lists(alice, phone):
    page = alice.page
    page.locator("#list-menu summary").click()
    page.locator("#rename").fill("Market")
    page.get_by_role("button", name="Rename").click()
    expect(phone.page.get_by_role("heading", name="Market")).to_be_visible()
    new_list(phone, "Garden")
    phone.page.locator("#list-menu summary").click()
    phone.page.get_by_role("button", name="Delete the list").click()
    expect(page.locator("#lists")).not_to_contain_text("Garden")
    check(True, "a list is renamed, and another one created and deleted, on both")


def find_person(todo, user):
    todo.page.get_by_label("The person's ID").fill(user)
    todo.page.keyboard.press("Enter")


def go_to_sharing(todo, title):
    todo.page.locator("#lists").get_by_role("link", name=title).click()
    todo.page.locator("#to-sharing").click()
    expect(todo.page.get_by_role("heading", name=title)).to_be_visible()


def choose_handle(bob):
    page = bob.page
    for handle, answer in (("b", "A handle has 3 to 32 letters"), ("@Bob", "Saved.")):
        page.get_by_label("Your handle").fill(handle)
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status")).to_contain_text(answer)
    bob.problems.clear()  # the refusal itself
    page.reload()
    check(page.get_by_label("Your handle").input_value() == "@bob", "a person chooses a handle, and sees it")


def find_by_handle(alice, user):
    page = alice.page
    find_person(alice, "@no-one")
    expect(page.get_by_role("status")).to_contain_text("There is no account with this handle")
    alice.problems.clear()  # the refusal itself
    find_person(alice, "@bob")
    expect(page.get_by_role("heading", name="@bob")).to_be_visible()
    check(page.locator(".id code").inner_text() == user, "another person finds them by it")
    page.go_back()


def meet(alice, bob):
    """Alice finds Bob by his ID and shares a list with him. Bob, who does not know her, gets a request."""
    page = alice.page
    bob.page.get_by_role("link", name="Invitations").click()
    user = bob.page.locator("#own-id").inner_text()
    choose_handle(bob)
    new_list(alice, "Party")
    for task in ("cake", "candles"):
        alice.add(task)
    page.get_by_role("link", name="Share this list").focus()
    page.keyboard.press("Enter")
    find_person(alice, "y" * len(user))
    expect(page.get_by_role("status")).to_contain_text("There is no account with this ID")
    alice.problems.clear()  # the refusal itself
    screenshots(alice, "share-first")
    find_by_handle(alice, user)
    find_person(alice, user)
    expect(page.locator(".number li")).to_have_count(12)
    page.get_by_label("Name, only on this device").fill("Bob")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Bob", exact=True)).to_be_visible()
    page.get_by_role("button", name="Share the list").click()
    expect(page.get_by_text("They have access to this list")).to_be_visible()
    screenshots(alice, "person")
    expect(bob.page.locator("#senders li")).to_have_count(1)
    check(True, "an invitation by an unknown person is a request, which appears without a reload")
    screenshots(bob, "unknown")
    return user


def accept(alice, bob):
    page = bob.page
    page.get_by_role("button", name="Accept messages from").click()
    expect(page.locator("#invitations li")).to_have_count(1)
    screenshots(bob, "invitations")
    page.locator("#invitations a").click()
    expect(page.locator(".number li")).to_have_count(12)
    check(page.locator(".number li").all_inner_texts() == alice.page.locator(".number li").all_inner_texts(),
          "both people see the same safety number")
    page.get_by_role("button", name="The numbers are equal").click()
    expect(page.locator(".identity.verified")).to_be_visible()
    page.get_by_role("link", name="Invitations").click()
    page.get_by_role("button", name="Accept Party").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Party")).to_be_visible()
    shows(bob, ["cake", "candles"], "an accepted list is there, opened with the keyboard")


def edit_together(alice, bob):
    alice.page.locator("#lists").get_by_role("link", name="Party").click()
    bob.add("lemonade")
    shows(alice, ["cake", "candles", "lemonade"], "a task of a member arrives at the owner's page")
    alice.row("cake").get_by_role("checkbox").check()
    expect(bob.row("cake").get_by_role("checkbox")).to_be_checked()
    check(True, "and a tick by the owner at the member's")
    screenshots(bob, "shared-list")


def delete_together(alice, bob, work):
    """Each deletes a task that the other has added, with its photo."""
    for author, other, title in ((alice, bob, "balloons"), (bob, alice, "confetti")):
        author.add(title)
        author.row(title).locator("a.body").click()
        author.page.locator("#f-photo").set_input_files(work / "large.jpg")
        expect(author.page.locator("#photo")).to_be_visible()
        author.page.locator("#lists").get_by_role("link", name="Party").click()
        addresses = []
        for todo in (author, other):
            expect(todo.row(title).locator("img.thumb")).to_be_visible()
            addresses.append(todo.row(title).locator("img.thumb").get_attribute("src"))
            check(media_type(todo, addresses[-1]) == "image/jpeg", f"{todo.folder.name} sees the photo of {title}")
        other.row(title).locator("a.body").click()
        other.page.get_by_role("button", name="Delete the task").click()
        for todo, address in zip((author, other), addresses):
            shows(todo, ["candles", "lemonade", "cake"], f"{title} is deleted by the other person")
            check(media_type(todo, address) == "image/svg+xml", "and its photo too")


def media_type(todo, address):
    """The type of a picture. In place of one that does not exist, the page's server sends an empty drawing."""
    return todo.page.evaluate("address => fetch(address).then(answer => answer.headers.get('content-type'))", address)


def change_rights(alice, bob):
    go_to_sharing(alice, "Party")
    expect(alice.page.locator("#members li")).to_have_count(2)
    screenshots(alice, "share")
    alice.page.locator("#members a").click()
    for rights, count in (("Can read", 0), ("Can edit", 1)):
        alice.page.get_by_label("What they may do").select_option(rights)
        alice.page.get_by_role("button", name="Save").first.click()
        expect(bob.page.get_by_label("New task", exact=True)).to_have_count(count)
        if count == 0:
            screenshots(bob, "reader")
    check(True, "a member may read only, then edit again, without a reload")


def leave(alice, bob):
    go_to_sharing(alice, "Party")
    bob.page.locator("#to-sharing").click()
    screenshots(bob, "member")
    bob.page.get_by_role("button", name="Leave the list").click()
    expect(bob.page.locator("#lists")).not_to_contain_text("Party")
    expect(alice.page.locator("#members li")).to_have_count(0)
    check(True, "a member who leaves is gone from the owner's page, and the list from theirs")


def decline_and_remove(alice, bob, user):
    bob.page.get_by_role("link", name="Invitations").click()
    for answer in ("Decline", "Accept"):
        go_to_sharing(alice, "Party")
        if alice.page.locator("#members a").count():
            alice.page.locator("#members a").click()
            alice.page.get_by_role("button", name="Invite again").click()
        else:
            find_person(alice, user)
            alice.page.get_by_role("button", name="Share the list").click()
        bob.page.get_by_role("button", name=f"{answer} Party").click()
        expect(bob.page.locator("#invitations li")).to_have_count(0)
        check(True, f"{answer} answers the invitation")
    shows(bob, ["candles", "lemonade", "cake"], "the list of a member who is invited again is there")
    alice.page.get_by_role("button", name="Remove").click()
    expect(bob.page.get_by_role("heading", name="no longer have access")).to_be_visible()
    expect(bob.page.locator("#lists")).not_to_contain_text("Party")
    check(True, "a member who is removed loses the list at once")


def owner_deletes(alice, bob, user):
    go_to_sharing(alice, "Party")
    find_person(alice, user)
    alice.page.get_by_role("button", name="Share the list").click()
    bob.page.get_by_role("link", name="Invitations").click()
    bob.page.get_by_role("button", name="Accept Party").click()
    shows(bob, ["candles", "lemonade", "cake"], "a member who was removed is invited again")
    alice.page.locator("#lists").get_by_role("link", name="Party").click()
    alice.page.locator("#list-menu summary").click()
    screenshots(alice, "list-menu")
    alice.page.get_by_role("button", name="Delete the list").click()
    expect(bob.page.get_by_role("heading", name="no longer have access")).to_be_visible()
    bob.page.get_by_role("link", name="Activity").click()
    for end_of_list in ("you no longer have access to this list", "its owner has deleted this list"):
        expect(bob.page.locator("#activity li", has_text=end_of_list)).to_have_count(1)
    expect(alice.page.locator("#lists")).not_to_contain_text("Party")
    screenshots(bob, "ended")
    check(True, "a shared list is deleted by its owner for both, and the member's activity says so")


def possibly_forged(alice, bob, words, user, terminal):
    """Alice sends an invitation, and declares the key that signed it compromised before Bob's process has read it."""
    new_list(alice, "Picnic")
    go_to_sharing(alice, "Picnic")
    find_person(alice, user)
    bob.process.send_signal(signal.SIGSTOP)
    try:
        alice.page.get_by_role("button", name="Share the list").click()
        expect(alice.page.locator("#status")).to_contain_text("Everything is in the cloud")
        terminal.run("account", "login", "--create-tree", "--server", bob.url, stdin=" ".join(words))
        terminal.run("account", "rotate-keys", "--compromised")
    finally:
        bob.process.send_signal(signal.SIGCONT)
    bob.page.get_by_role("link", name="Invitations").click()
    expect(bob.page.locator("#compromised li")).to_have_count(1)
    expect(bob.page.locator("#invitations li")).to_have_count(0)
    check(bob.page.locator("#senders li").count() == 0, "an invitation under a compromised key is possibly forged, and is not shown")
    screenshots(bob, "compromised")
    bob.page.locator("#compromised").get_by_role("button", name="Accept").click()
    expect(bob.page.locator("#invitations li")).to_have_count(1)
    check(True, "the user accepts it nevertheless")


def sharing(alice, bob, work):
    words = create_account(bob)
    new_list(bob, "Work")
    user = meet(alice, bob)
    accept(alice, bob)
    edit_together(alice, bob)
    delete_together(alice, bob, work)
    change_rights(alice, bob)
    leave(alice, bob)
    decline_and_remove(alice, bob, user)
    owner_deletes(alice, bob, user)
    bob.page.get_by_role("link", name="Work").first.click()
    alice.page.get_by_role("link", name="Market").first.click()
    return words, user


def second_account(alice, bob, words):
    alice.page.goto(alice.origin + "/welcome")
    log_in(alice, words)
    alice.page.get_by_role("link", name="Work").click()
    bob.add("report")
    shows(alice, ["report"], "a second account on the same device has its own lists")
    alice.page.locator("#accounts summary").click()
    alice.page.get_by_role("link", name="Account 1").click()
    expect(alice.page.locator("#lists")).not_to_contain_text("Work")
    alice.page.get_by_role("link", name="Market").click()


def latency(alice, phone, task, count):
    """How long until a tick on one page is painted on the other, in milliseconds, sorted."""
    phone.page.evaluate("""task => { window.seen = [];
      const rows = () => [...document.querySelectorAll('.task')].filter(row => row.querySelector('.name')?.innerText === task);
      window.last = rows()[0].querySelector('input').checked;
      new MutationObserver(() => { const state = rows()[0]?.querySelector('input').checked;
        if (state !== window.last) { window.last = state; requestAnimationFrame(() => window.seen.push(Date.now())); } })
      .observe(document.getElementById('app'), {subtree: true, childList: true, attributes: true}); }""", task)
    times = []
    for _ in range(count):
        before = phone.page.evaluate("window.seen.length")
        clicked = alice.page.evaluate(
            "task => { const row = [...document.querySelectorAll('.task')].find(row => row.querySelector('.name')?.innerText === task);"
            " const now = Date.now(); row.querySelector('input').click(); return now; }", task)
        phone.page.wait_for_function("count => window.seen.length > count", arg=before)
        times.append(phone.page.evaluate("window.seen.at(-1)") - clicked)
        time.sleep(0.15)
    return sorted(times)


def import_large(alice, work):
    """50 lists with 5,000 tasks."""
    lines = [f"task {number} +List{number % 50:02}" for number in range(5_000)]
    (work / "large.txt").write_text("\n".join(lines))
    alice.command("import", work / "large.txt", "--offline")
    expect(alice.page.locator("#status")).to_contain_text("Everything is in the cloud", timeout=120_000)


def paints(todo, count):
    """The times of the first paint of the lists, and of a list, in milliseconds, sorted."""
    lists, tasks = [], []
    for _ in range(count):
        for times, open_page in ((lists, lambda: todo.page.goto(todo.origin)),
                                 (tasks, lambda: todo.page.get_by_role("link", name="List07").click())):
            open_page()
            todo.page.wait_for_selector("#lists li" if times is lists else "#open .task")
            todo.page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
            times.append(todo.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
    return sorted(lists), sorted(tasks)


def peak_memory(todo):
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{todo.process.pid}/status").read_text())[1]) // 1024


def large(alice, work):
    import_large(alice, work)
    lists, tasks = paints(alice, 3)
    say(f"  first paint with 50 lists and 5,000 tasks: {lists[0]:.0f} to {tasks[-1]:.0f} ms; debug build")
    screenshots(alice, "list")
    say(f"  peak memory of the page's process: {peak_memory(alice)} MiB")


def picture(bob, work):
    """The picture in the README: docs/images/todo.png."""
    for title, tasks in {
        "Garden": ["Sow radishes", "Water the tomatoes"], "Groceries": ["Dark bread", "Oat milk", "Two lemons", "Coffee"],
        "Trip to Lisbon": ["Book the night train", "Passport photos", "Learn ten sentences"],
    }.items():
        bob.command("add", title, *tasks)
    for band, size in (("r", 200), ("g", 260), ("b", 340)):
        subprocess.run(["vips", "perlin", work / f"{band}.v", "800", "600", "--cell-size", str(size)], check=True)
        subprocess.run(["vips", "scale", work / f"{band}.v", work / f"{band}-scaled.v"], check=True)
        subprocess.run(["vips", "linear", work / f"{band}-scaled.v", work / f"{band}-soft.v", "0.45", "130", "--uchar"], check=True)
    bands = " ".join(str(work / f"{band}-soft.v") for band in "rgb")
    subprocess.run(["vips", "bandjoin", bands, work / "rgb.v"], check=True)
    subprocess.run(["vips", "copy", work / "rgb.v", work / "clouds.jpg", "--interpretation", "srgb"], check=True)
    bob.command("edit", "Groceries", "Dark bread", "--priority", "high", "--details", "from the market, before noon")
    bob.command("edit", "Groceries", "Two lemons", "--priority", "low")
    bob.command("done", "Groceries", "Coffee")
    bob.command("done", "Garden", "Sow radishes")
    bob.command("photo", "Groceries", "Oat milk", "--attach", work / "clouds.jpg")
    bob.page.goto(bob.origin)
    bob.page.get_by_role("link", name="Groceries").first.click()
    expect(bob.page.locator("#status")).to_contain_text("Everything is in the cloud", timeout=20_000)
    bob.page.wait_for_function("() => document.querySelector('.thumb')?.naturalWidth === 256")
    screenshots(bob, "groceries")
    bob.page.set_viewport_size({"width": 1100, "height": 640})
    bob.page.screenshot(path=SHOTS / "todo.png")
    bob.page.set_viewport_size(PHONE)
    bob.page.goto(bob.origin)
    screenshots(bob, "lists")


def refusals(alice, browser):
    def status(url, method="GET", **headers):
        request = urllib.request.Request(url, method=method, headers=headers, data=b"title=x" if method == "POST" else None)
        opener = urllib.request.build_opener(type("Stay", (urllib.request.HTTPRedirectHandler,), {"redirect_request": lambda *_: None}))
        try:
            return opener.open(request).status
        except urllib.error.HTTPError as error:
            return error.code

    cookies = alice.page.context.cookies()
    cookie = "; ".join(f"{item['name']}={item['value']}" for item in cookies)
    check(all(item["httpOnly"] and item["sameSite"] == "Strict" for item in cookies), "the cookie is for this site only")
    lists = alice.page.url.split("/list/")[0] + "/lists"
    check(status(alice.origin) == 401, "without the token, nothing is shown")
    check(status(alice.origin + "/?token=" + "0" * 64) == 401, "nor with a wrong one")
    check(status(alice.origin, Cookie=cookie, Host=f"evil.example:{alice.port}") == 421, "another host's name is refused")
    check(status(lists, "POST", Cookie=cookie) == 403, "a form without an origin is refused")
    check(status(lists, "POST", Cookie=cookie, Origin="http://evil.example") == 403, "and one of another site")
    check(status(lists, "POST", Cookie=cookie, Origin=alice.origin) == 303, "and one of this page is not")
    page = browser.new_context().new_page()
    answer = page.goto(alice.origin)
    check(answer.status == 401 and "default-src 'none'" in answer.headers["content-security-policy"], "the policy is strict")


def story(alice, phone, bob, server, browser, bin_folder, work):
    own_words = create_account(alice)
    log_in(phone, own_words)
    lists_and_tasks(alice, phone)
    downloads_restart(own_words, server, browser, bin_folder, work)
    by_keyboard(alice, phone)
    reduced_motion(alice)
    order(alice, phone)
    requests(alice, phone)
    hidden(alice, phone)
    undo_deletion(alice, phone)
    open_forms(alice, phone)
    typed_text(alice, phone)
    photos(alice, phone, work)
    server_sees(alice)
    hostile(alice, phone)
    conflicts(alice, phone, server)
    lists(alice, phone)
    words, user = sharing(alice, bob, work)
    second_account(alice, bob, words)
    phone.page.get_by_role("link", name="Market").click()
    times = latency(alice, phone, "bread", 20)
    say(f"  a tick reaches the other page in {statistics.median(times):.0f} ms (median), {times[-1]} ms (slowest of 20); debug build")
    refusals(alice, browser)
    picture(bob, work)
    large(alice, work)
    for todo in (alice, phone, bob):
        check(not todo.problems, f"no console error and no foreign request {todo.problems[:3] or ''}")
    possibly_forged(alice, bob, own_words, user, Device("terminal", bin_folder, work / "terminal"))
    stopped(bob)


def main():
    bin_folder = Path(sys.argv[1])
    SHOTS.mkdir(exist_ok=True)
    expect.set_options(timeout=30_000)  # for machines that are busy
    with tempfile.TemporaryDirectory(prefix="zdc-todo-") as folder, sync_playwright() as playwright, ExitStack() as stack:
        work = Path(folder)
        make_pictures(work)
        server = Server(bin_folder, work)
        stack.callback(server.stop)
        browser = launch(playwright)
        todos = []
        for name in ("alice", "phone", "bob"):
            todos.append(Todo(bin_folder, work / name, server.url))
            stack.callback(end, todos[-1].process)
        for todo in todos:
            todo.page = todo.open(browser)
        try:
            story(*todos, server, browser, bin_folder, work)
        finally:
            for todo in todos:
                todo.page.screenshot(path=SHOTS / f"last-{todo.folder.name}.png")
    say(f"todo: screenshots are in {SHOTS.relative_to(ROOT)}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
