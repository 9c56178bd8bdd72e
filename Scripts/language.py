"""How much of the prose in the repository is in plain English: a smoke detector for idioms that a native reader stumbles over.

Counts the pieces of prose that hold a word from the list: in sources, comment blocks and texts of more than three words in
quotation marks; in documents, paragraphs, items of lists and rows of tables, without code.
"""
import re

# Above this share, in any area, a check fails. Some hits are harmless, so it is not zero.
CEILING = 0.02

# Each has the ceiling, so that a large area does not hide a small one.
AREAS = {"Sources": "sources", "Tests": "tests"}
OTHER_SOURCES, DOCUMENTS = "other sources", "documents"

MARKERS = re.compile(
    "|".join(
        [
            r"\b(?:nobody|somebody|whoever|everybody)\b",
            r"\b(?:go|goes|going|gone|went) on\b",
            r"\b(?:is|are|was|were|be|being|been) told\b",
            r"\bstands? (?:in|there|still|for the)\b",
            r"\btakes? back\b",
            r"\banew\b",
            r"\bmeanwhile\b",
            r"\blies in\b",
            r"\ba content\b",
            r"\bcontents (?:are|is|that|come|go|of nodes)\b",
            r"\bof (?:its|their|his) own\b",
            r"\b(?:by|for) itself\b",
            r"\bto be had\b",
            r"\bso many\b",
            r"\bdone with\b",
            r"\b(?:he|his|him)\b",
            r"\bsees to it\b",
            r"\bsays so\b",
            r"\bwho (?:asks|waits|reads)\b",
            r"\bbecomes? of\b",
            r"\bbe it (?:by|in|as)\b",
            r"(?:^|[.:;] )Who (?:is|was|has|had|may|reads|asks|waits|signed|made|wrote|put|deletes|only)\b",
            r"(?:^|[.:;] )What (?:is|was|are|were|has|had|this|it|the|a|an|goes|comes|stands|follows)\b",
        ]
    ),
    re.IGNORECASE,
)
# A question may begin with "What is".
QUESTION = re.compile(r"Wh(?:at|o) [^.:;]*\?")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def prose(text):
    """Comment blocks and longer strings, each with the line on which it begins."""
    block, start = [], 0
    for number, line in enumerate(text.split("\n") + [""], 1):
        stripped = line.strip()
        if stripped.startswith("//"):
            start = start or number
            block.append(stripped.lstrip("/").strip())
            continue
        if block:
            yield start, " ".join(block)
            block, start = [], 0
        code, _, trailing = line.partition(" // ")
        if trailing:
            yield number, trailing
        for string in STRING.findall(code):
            if len(string.split()) > 3:
                yield number, string


def document_prose(text):
    """The paragraphs, items and rows of a document, each with the line on which it begins."""
    block, start, is_code = [], 0, False
    for number, line in enumerate(text.split("\n") + [""], 1):
        stripped = line.strip()
        is_fence = stripped.startswith("```")
        if block and (not stripped or is_fence or stripped.startswith(("|", "- ", "#"))):
            yield start, " ".join(block)
            block = []
        is_code ^= is_fence
        if stripped and not is_code and not is_fence:
            start = start if block else number
            block.append(stripped)


def pieces(path, text):
    return document_prose(text) if is_document(path) else prose(text)


def is_document(path):
    return path.endswith((".md", ".tutorial"))


def area(path):
    return DOCUMENTS if is_document(path) else AREAS.get(path.split("/")[0], OTHER_SOURCES)


def is_marked(text):
    return MARKERS.search(QUESTION.sub("", text)) is not None


def count(texts):
    """By area, the number of pieces of prose, and those that hold a marker."""
    counts = {}
    for path, text in texts:
        total, marked = counts.get(area(path), (0, []))
        found = list(pieces(path, text))
        marked += [(path, number, piece) for number, piece in found if is_marked(piece)]
        counts[area(path)] = total + len(found), marked
    return counts


def self_test():
    for text, expected in {
        "// Nobody waits for it.": True,
        "/// Returns the record.": False,
        "// What is the size of\n// a page?": False,
        "// The zone.\n// What is left goes first.": True,
        "/// Who signed the put.": True,
        'let hint = "the sync goes on when the server answers"': True,
        'let name = "a content"': False,
        "let a = 1 // told by nobody": True,
    }.items():
        if bool(count([("Sources/x.swift", text)])[AREAS["Sources"]][1]) != expected:
            raise SystemExit(f"language: the checker is wrong about {text!r}")
    document = "# A title\n\nNobody reads\nthis.\n- One is\n  told.\n- two\n```\n// nobody\n```\n| anew | b |\nWho is it?\n"
    total, marked = count([("docs/x.md", document)])[DOCUMENTS]
    if total != 5 or [number for _, number, _ in marked] != [3, 5, 11]:
        raise SystemExit(f"language: the checker is wrong about a document: {total}, {marked}")
