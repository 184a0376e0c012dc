"""Where names in running text may go on in the next line.

A browser breaks a line after a hyphen, also in `--max-leaf`, and nowhere in `benchmarks/results/tree_vs_peers.json`.
Here options stay whole, and long names may break after a slash, a dot, a comma, an underline or a bracket.
"""

from __future__ import annotations

import re

WHOLE = 16  # a name of so many letters fits into most lines
SPAN = re.compile(r"<code>([^<]*)</code>")
BLOCK = re.compile(r"<pre\b.*?</pre>", re.S)
LETTER = re.compile(r"&[#\w]+;|.", re.S)
FRACTIONS = re.compile(r"(?<=[\d%]) / (?=[\d.]+)")


def with_line_breaks(page: str) -> str:
    """Return the HTML of a page whose names break where they should.

    >>> with_line_breaks("<code>--max-leaf 8</code>, <code>tree/label_tree.py</code>")
    '<code><span class="whole">--max-leaf</span> 8</code>, <code>tree/<wbr>label_<wbr>tree.<wbr>py</code>'
    """
    out, at = [], 0
    for block in [*BLOCK.finditer(page), None]:
        end = len(page) if block is None else block.start()
        text = SPAN.sub(lambda found: f"<code>{breakable(found[1])}</code>", page[at:end])
        out.append(FRACTIONS.sub("&nbsp;/&nbsp;", text))
        if block is not None:
            out.append(block[0])
            at = block.end()
    return "".join(out)


def breakable(code: str) -> str:
    """Return a span of code in which options are whole and long names can break."""
    return " ".join(word_html(word) for word in code.split(" "))


def word_html(word: str) -> str:
    """Return one word of a span of code."""
    letters = LETTER.findall(word)
    if word.startswith("-"):
        return f'<span class="whole">{word}</span>' if len(letters) <= 2 * WHOLE else word
    if len(letters) <= WHOLE:
        return word
    return "".join(
        letter + ("<wbr>" if letter in "/._,=([:" and after not in "/._,=([:)]" else "")
        for letter, after in zip(letters, [*letters[1:], ")"], strict=True)
    )
