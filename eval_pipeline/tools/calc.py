"""``python_calc``: arithmetic on numbers by an allow-list over the syntax tree, without ``eval``.

Nothing else that Python can do belongs here; programs run in :mod:`eval_pipeline.tools.python_exec`.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable

Number = int | float

MAX_EXPRESSION = 10_000
"""Characters of an expression."""
MAX_BITS = 10_000
"""Bits of an integer, about 3,000 digits: below the length at which Python refuses to print one."""
MAX_ROUND_DIGITS = 400

_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_UNARY: dict[type[ast.unaryop], Callable[[Number], Number]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_NAMED = {
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Assign: "an assignment",
    ast.AugAssign: "an assignment",
    ast.AnnAssign: "an assignment",
    ast.NamedExpr: "an assignment",
    ast.FunctionDef: "a function definition",
    ast.Lambda: "a lambda",
    ast.Attribute: "an attribute",
    ast.Subscript: "an index",
    ast.Compare: "a comparison",
    ast.BoolOp: "and/or",
    ast.IfExp: "if/else",
    ast.Tuple: "a comma outside round, min and max (write 1000, not 1,000)",
    ast.List: "a list",
    ast.Dict: "a dict",
    ast.Set: "a set",
    ast.JoinedStr: "a text",
    ast.BitXor: "the operator ^ (a power is **)",
}


def calculate(expression: str) -> str:
    """The value of an arithmetic expression, as Python prints it.

    Allowed: int and float numbers, ``+ - * / // % **``, parentheses, ``round``, ``abs``, ``min`` and ``max``.

    Raises:
        ValueError: anything else stands in it, it is too long, or its value too large or not real.
        SyntaxError: it is not Python at all.
        ZeroDivisionError: it divides by zero.
    """
    if len(expression) > MAX_EXPRESSION:
        raise ValueError(f"the expression has {len(expression)} characters, at most {MAX_EXPRESSION} are allowed")
    try:
        body = ast.parse(expression.strip()).body
        if not body:
            raise ValueError("the expression is empty; give arithmetic such as (3 + 4) * 2.5")
        if len(body) > 1 or not isinstance(body[0], ast.Expr):
            other = next((node for node in body if not isinstance(node, ast.Expr)), None)
            raise _refused(_name(other) if other else "more than one expression")
        return str(_value(body[0].value))
    except (RecursionError, MemoryError):
        raise ValueError("the expression is nested too deeply") from None
    except OverflowError:
        raise ValueError("a number in the calculation is too large") from None


def _value(node: ast.expr) -> Number:
    chain: list[ast.BinOp] = []
    # A long sum is nested to the left once per term: followed by a loop, it needs no recursion.
    while isinstance(node, ast.BinOp):
        chain.append(node)
        node = node.left
    value = _term(node)
    for step in reversed(chain):
        value = _checked(_combine(step.op, value, _value(step.right)))
    return value


def _term(node: ast.expr) -> Number:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        assert isinstance(node.value, int | float)
        return _checked(node.value)
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _UNARY[type(node.op)](_value(node.operand))
    if isinstance(node, ast.Call):
        return _checked(_call(node))
    raise _refused(_name(node.op if isinstance(node, ast.UnaryOp) else node))


def _combine(op: ast.operator, left: Number, right: Number) -> Number:
    if isinstance(op, ast.Pow):
        return _power(left, right)
    if type(op) not in _BINARY:
        raise _refused(_name(op))
    return _BINARY[type(op)](left, right)


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * exponent > MAX_BITS:
        raise ValueError(f"the power is too large, at most {MAX_BITS} bits are allowed")
    result = base**exponent
    if isinstance(result, complex):
        raise ValueError("the power is not a real number")
    return float(result) if isinstance(result, float) else int(result)


def _call(node: ast.Call) -> Number:
    name = node.func.id if isinstance(node.func, ast.Name) else None
    if name not in ("round", "abs", "min", "max"):
        raise _refused(f"the function {name}" if name else "a function")
    if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
        raise _refused(f"a keyword or * in {name}")
    values = [_value(argument) for argument in node.args]
    if name == "abs" and len(values) == 1:
        return abs(values[0])
    if name in ("min", "max") and len(values) > 1:
        return min(values) if name == "min" else max(values)
    if name == "round" and len(values) in (1, 2):
        return _rounded(*values)
    raise ValueError(f"{name} does not take {len(values)} numbers")


def _rounded(value: Number, digits: Number | None = None) -> Number:
    if digits is None:
        return round(value)
    # 10 to the power of the digits is computed for an int, however many they are.
    if not isinstance(digits, int) or abs(digits) > MAX_ROUND_DIGITS:
        raise ValueError(f"round takes a whole number of digits from -{MAX_ROUND_DIGITS} to {MAX_ROUND_DIGITS}")
    return round(value, digits)


def _checked(value: Number) -> Number:
    too_large = value.bit_length() > MAX_BITS if isinstance(value, int) else not math.isfinite(value)
    if too_large:
        raise ValueError("a number in the calculation is too large")
    return value


def _name(node: ast.AST) -> str:
    if type(node) in _NAMED:
        return _NAMED[type(node)]
    if isinstance(node, ast.Name):
        return f"the name {node.id[:40]}"
    if isinstance(node, ast.Constant):
        return "a text" if isinstance(node.value, str | bytes) else f"the value {str(node.value)[:40]}"
    if isinstance(node, ast.operator | ast.unaryop):
        return f"the operator {type(node).__name__}"
    return f"Python's {type(node).__name__}"


def _refused(what: str) -> ValueError:
    return ValueError(f"only arithmetic is allowed: {what} is not")
