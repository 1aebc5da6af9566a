#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Print docs/protocol.md, made from the specification of the family.

usage: protocol_doc.py uapi/specs/gpucr.yaml

Every operation's doc has a paragraph "Who may: ..." and one "Errors: ...";
every attribute has a doc or an enum. Without them this fails, so that nothing
goes undocumented. scripts/regen.sh runs it.
"""
import sys

import yaml

HEAD = """<!-- Made from uapi/specs/gpucr.yaml by scripts/regen.sh: do not edit. -->
# The protocol

Generic netlink family `{name}`, protocol version {version}. What may change, and how: `uapi/README.md`.
How a relay works and why: [architecture.md](architecture.md). Why who may what: [security.md](security.md).
"""

# What every set has for padding 64-bit attributes.
PAD = "pad"


class Bad(Exception):
    """The specification says too little."""


def flow(text):
    """Paragraphs of a doc, each on one line."""
    return [" ".join(p.split()) for p in text.strip().split("\n\n")]


def cell(text):
    return " ".join(text.split()).replace("|", "\\|")


def split_doc(op):
    """What the operation does, who may, and its errors."""
    does, who, errors = [], None, None
    for p in flow(op["doc"]):
        if p.startswith("Who may: "):
            who = p[len("Who may: "):]
        elif p.startswith("Errors: "):
            errors = p[len("Errors: "):]
        else:
            does.append(p)
    if not does or not who or not errors:
        raise Bad(f"operation {op['name']}: no \"Who may:\" or no \"Errors:\"")
    return does, who[0].upper() + who[1:], errors[0].upper() + errors[1:]


def kind_of(op):
    if "event" in op:
        return f"event, group `{op['mcgrp']}`"
    if "do" in op:
        return "do"
    answers = op["dump"].get("reply", {}).get("attributes", [])
    return "relay: a dump of two messages" if "phase" in answers else "dump"


def names(message):
    listed = (message or {}).get("attributes", [])
    return ", ".join(f"`{a}`" for a in listed) or "nothing"


def operation(op, number):
    does, who, errors = split_doc(op)
    out = [f"### {op['name']}", "", f"Number {number}, {kind_of(op)}, attributes `{op['attribute-set']}`.", ""]
    for p in does:
        out += [p, ""]
    out += [f"- **Who may**: {who}", f"- **Errors**: {errors}"]
    if "event" in op:
        return out + [f"- **Tells**: {names(op['event'])}", ""]
    way = op.get("do") or op["dump"]
    return out + [f"- **Request**: {names(way.get('request'))}", f"- **Reply**: {names(way.get('reply'))}", ""]


def type_of(a):
    text = a["type"]
    if "enum" in a:
        text += f", `{a['enum']}`" + (" (bits)" if a.get("enum-as-flags") else "")
    if a.get("multi-attr"):
        text += ", several"
    if "checks" in a:
        text += "".join(f", {k} {v}" for k, v in a["checks"].items())
    return text


def attribute_set(s):
    out = [f"### {s['name']}", "", "| no. | attribute | type | |", "|---|---|---|---|"]
    for number, a in enumerate(s["attributes"], 1):
        if a["type"] == PAD:
            continue
        if not a.get("doc") and "enum" not in a and not self_explaining(a["name"]):
            raise Bad(f"attribute {s['name']}.{a['name']}: no doc and no enum")
        out.append(f"| {number} | {a['name']} | {type_of(a)} | {cell(a.get('doc', ''))} |")
    return out + [""]


def self_explaining(name):
    """Counts, sizes and numbers of which a neighbour's doc says all."""
    return name in ("dev-minor", "num-bos", "num-devices", "owner-pid", "owner-comm", "doorbell-id", "priv-size",
                    "num-objects")


def definition(d):
    flags = d["type"] == "flags"
    out = [f"### {d['name']}", ""]
    if d.get("doc"):
        out += [flow(d["doc"])[0], ""]
    out += ["| value | name | |", "|---|---|---|"]
    for i, e in enumerate(d["entries"]):
        e = e if isinstance(e, dict) else {"name": e}
        out.append(f"| {1 << i if flags else i} | {e['name']} | {cell(e.get('doc', ''))} |")
    return out + [""]


def document(spec):
    out = [HEAD.format(name=spec["name"], version=spec.get("version", 1))]
    for p in flow(spec["doc"]):
        out += [p, ""]
    out += ["## Operations", ""]
    for number, op in enumerate(spec["operations"]["list"], 1):
        out += operation(op, number)
    out += ["## Attributes", "", "Numbers are in the machine's byte order. "
            "Addresses and sizes have 64 bits.", ""]
    for s in spec["attribute-sets"]:
        out += attribute_set(s)
    out += ["## Values", ""]
    for d in spec["definitions"]:
        out += definition(d)
    return "\n".join(out).rstrip("\n") + "\n"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as f:
        spec = yaml.safe_load(f)
    try:
        sys.stdout.write(document(spec))
    except Bad as e:
        sys.exit(f"protocol_doc: {e}")


main()
