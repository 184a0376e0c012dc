r"""Formulas of the pages, written as LaTeX and shown as MathML, which browsers draw without scripts or fonts.

A view of the repository shows a block ```` ```math ```` and $`x_i`$ within a line as formulas too. Known is what the
pages use: names of Greek letters, signs and operators, _ and ^, \frac, \binom, \sqrt, \hat, \bar, \text, \mathbf,
\left and \right.

>>> inline("x_i^2")
'<math><msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup></math>'
>>> inline(r"\frac{1}{n}")
'<math><mfrac><mn>1</mn><mi>n</mi></mfrac></math>'
"""

from __future__ import annotations

import re
from html import escape

BLOCK = re.compile(r"^```math\n(.*?)^```[ \t]*$", re.M | re.S)
INLINE = re.compile(r"\$`([^`\n]+)`\$")
TOKEN = re.compile(r"\\(?:text|mathbf|operatorname)\{[^}]*\}|\\[a-zA-Z]+|\\.|\d+(?:\.\d+)?|\s+|.", re.S)
# fmt: off
LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "theta": "θ",
    "lambda": "λ", "mu": "μ", "pi": "π", "sigma": "σ", "tau": "τ", "phi": "φ",
    "ell": "ℓ", "Delta": "Δ",
}
SIGNS = {
    "cdot": "·", "times": "×", "odot": "⊙", "le": "≤", "ge": "≥", "ne": "≠",
    "in": "∈", "ni": "∋", "notin": "∉", "to": "→", "gets": "←", "sum": "∑",
    "prod": "∏", "langle": "⟨", "rangle": "⟩", "top": "⊤", "ldots": "…", "pm": "±",
    "approx": "≈", "cup": "∪", "lVert": "‖", "rVert": "‖",
}
# fmt: on
NAMES = {"max", "min", "log", "exp", "sign", "cos", "sin", "clip", "softmax", "argmax", "tr", "Pr"}
LIMITS = {"max", "min", "argmax", "sum", "prod"}  # what stands below them in a block
FRAMES = {
    "text": "<mtext>{}</mtext>",
    "mathbf": "<mi>{}</mi>",
    "operatorname": "<mi>{}</mi>",
}
OPERATORS = set("+-=()[]|,;:!<>/.*'")


class Formula:
    """A formula that is read token by token."""

    def __init__(self, source: str, block: bool) -> None:
        self.tokens = [token for token in TOKEN.findall(source) if not token.isspace()]
        self.at, self.block = 0, block

    def next(self) -> str:
        """Return the next token, an empty one at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        """Return the next token and go on."""
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def row(self, *ends: str) -> str:
        """Return all parts up to one of the tokens, or to the end."""
        parts = []
        while self.next() and self.next() not in ends:
            parts.append(self.part())
        return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"

    def part(self) -> str:
        """Return one part with what stands below and above it."""
        limits = self.block and self.next().lstrip("\\") in LIMITS
        base, below, above = self.atom(), "", ""
        while self.next() in ("_", "^"):
            if self.take() == "_":
                below = self.atom()
            else:
                above = self.atom()
        names = ("munder", "mover", "munderover") if limits else ("msub", "msup", "msubsup")
        if below or above:
            name = names[2] if below and above else names[0] if below else names[1]
            space = '<mspace width="0.17em"/>' if limits else ""
            return f"<{name}>{base}{below}{above}</{name}>{space}"
        return base

    def atom(self) -> str:
        """Return one letter, number, sign, group or command."""
        token = self.take()
        if token == "{":
            inner = self.row("}")
            self.take()
            return inner
        if token.startswith("\\"):
            return self.command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token in OPERATORS:
            return f"<mo>{escape('−' if token == '-' else token)}</mo>"
        return f"<mi>{escape(token)}</mi>"

    def command(self, name: str) -> str:
        """Return what a command stands for."""
        if name in LETTERS:
            return f"<mi>{LETTERS[name]}</mi>"
        if name in ("left", "right"):
            return f"<mo>{escape(self.take())}</mo>"
        if name.startswith(("text{", "mathbf{", "operatorname{")):
            kind, words = name[:-1].split("{")
            return FRAMES[kind].format("".join(map(bold, words)) if kind == "mathbf" else escape(words))
        if name == "frac":
            return f"<mfrac>{self.atom()}{self.atom()}</mfrac>"
        if name == "binom":
            return f'<mo>(</mo><mfrac linethickness="0">{self.atom()}{self.atom()}</mfrac><mo>)</mo>'
        if name in ("hat", "bar"):
            return f"<mover>{self.atom()}<mo>{'^' if name == 'hat' else '¯'}</mo></mover>"
        if name == "sqrt":
            return f"<msqrt>{self.atom()}</msqrt>"
        if name in NAMES:
            return f"<mi>{name}</mi><mo>&#8289;</mo>" if self.next() not in ("_", "^") else f"<mi>{name}</mi>"
        if name in SIGNS:
            return f"<mo>{SIGNS[name]}</mo>"
        if name in ("quad", ",", " "):
            return f'<mspace width="{1 if name == "quad" else 0.17}em"/>'
        if name in ("{", "}"):
            return f"<mo>{name}</mo>"
        raise ValueError(f"formulas on the pages may not use \\{name}: formulas.py does not know it.")


def bold(letter: str) -> str:
    """Return a letter as it stands for a vector or a matrix."""
    return chr(ord(letter) + (0x1D41A - ord("a") if letter.islower() else 0x1D400 - ord("A")))


def inline(source: str) -> str:
    """Return a formula within a line as MathML."""
    return f"<math>{Formula(source, block=False).row()}</math>"


def block(source: str) -> str:
    """Return a formula on a line of its own as MathML."""
    return f'<div class="formula"><math display="block">{Formula(source, block=True).row()}</math></div>'


def with_formulas(markdown: str) -> str:
    """Return a page with its formulas as MathML."""
    markdown = BLOCK.sub(lambda found: block(found[1]), markdown)
    return INLINE.sub(lambda found: f'<span class="formula-inline">{inline(found[1])}</span>', markdown)  # no block
