"""What schemathesis cannot know: which ids belong together, and what a body of octets looks like. Scripts/test_api.py starts it.

ZDC_KNOWN names a file with the paths and bodies that the server has accepted from devices, by operation.
"""
import base64
import json
import os
from hashlib import sha256
from pathlib import Path

import schemathesis
from hypothesis import strategies as st
from schemathesis.core.parameters import ParameterLocation

KNOWN = json.loads(Path(os.environ["ZDC_KNOWN"]).read_text())
BUNDLE = "application/vnd.zdc.bundle"


def bundle(items):
    """Items as a bundle frames them (PROTOCOL 3.13)."""
    return b"".join(bytes([kind]) + len(body).to_bytes(4, "big") + body for kind, body in items)


schemathesis.openapi.media_type(BUNDLE, st.lists(st.tuples(st.integers(0, 11), st.binary(max_size=300)), max_size=8).map(bundle))


def plain_names(value):
    """The same JSON without escapes in names, which the server refuses (PROTOCOL 3.13)."""
    if isinstance(value, dict):
        return {"".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "x" for c in name): plain_names(item)
                for name, item in value.items()}
    return [plain_names(item) for item in value] if isinstance(value, list) else value


@schemathesis.hook
def map_body(_, body):
    return plain_names(body)


@schemathesis.hook
def before_call(_, case, kwargs):
    """Gives most cases ids of things that exist, and some of them a body that the server has accepted from a device."""
    known = KNOWN.get(case.operation.definition.raw["operationId"])
    if not known or case.meta is None:
        return
    number = sha256(repr((case.path_parameters, case.query, case.body)).encode()).digest()
    exchange = known[number[0] % len(known)]
    if case.path_parameters and number[1] % 4 and not case.meta.is_negative_at(ParameterLocation.PATH):
        case.path_parameters = dict(exchange["path"])
    if exchange["body"] and number[2] % 2 and case.meta.generation.mode.is_positive:
        case.body = base64.b64decode(exchange["body"])
        if case.media_type == "application/json":
            case.body = json.loads(case.body)
