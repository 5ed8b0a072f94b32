"""Prints Rust files as `path:line:code`, with the contents of comments and of
string and character literals left out, so that grep sees code only.

    python3 ci/code.py crates/mem/src | grep -w unsafe
"""

import re
import sys
from pathlib import Path

# What is kept is the first group; lifetimes are matched so that their quote is
# not taken for a character's.
TOKEN = re.compile(
    r"""
      //[^\n]*                                  # comment to the end of the line
    | /\*                                       # block comment: nested, see below
    | [bc]?r(?P<hashes>\#*)".*?"(?P=hashes)     # raw string
    | [bc]?"(?:\\.|[^"\\])*"                    # string
    | b?'(?:\\[^\n]+?|[^\\\n])'                 # character
    | (?P<code>'\w+|r\#\w+|\w+|\s+|.)           # lifetime, word, space, punctuation
    """,
    re.X | re.S,
)


def code_of(text):
    """`text` with comments and literals emptied; line breaks stay."""
    out, at = [], 0
    while at < len(text):
        token = TOKEN.match(text, at)
        end = token.end()
        if token["code"] is not None:
            out.append(token["code"])
        else:
            if token[0] == "/*":
                depth = 1
                while depth and end < len(text):
                    step = {"/*": 1, "*/": -1}.get(text[end : end + 2], 0)
                    depth += step
                    end += 2 if step else 1
            # A space, so that the words on both sides stay apart.
            out.append(" " + "\n" * text.count("\n", at, end))
        at = end
    return "".join(out)


def self_check():
    """What the expression above is easily wrong about."""
    for text, code in [
        ('a /* "b /* c */ */ d', "a   d"),
        ("&'a T; 'b' b'\\'' '\\\\' '\\u{1F600}' e", "&'a T;         e"),
        ('r#"un"safe"# x r"\\" y', "  x   y"),
        ('"a\\"b" // c\nd', "   \nd"),
        ("r#type", "r#type"),
        ("/* a\nb */c", " \nc"),
    ]:
        assert code_of(text) == code, (text, code_of(text), code)


self_check()
for root in map(Path, sys.argv[1:]):
    for path in [root] if root.is_file() else sorted(root.rglob("*.rs")):
        for number, line in enumerate(code_of(path.read_text()).split("\n"), 1):
            if line.strip():
                print(f"{path}:{number}:{line}")
