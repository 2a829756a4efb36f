"""Reader of herd's C: parses the header and the threads, and builds the litmus test."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from litmusfuzz.corpus.condition import FALSE, MAX_DEPTH, TRUE, Atom, Condition, Name, Prop
from litmusfuzz.corpus.document import MAX_BYTES, FileError
from litmusfuzz.corpus.herd.scanner import (
    FINAL,
    Scanner,
    is_name,
    is_number,
    read_condition,
    read_locations,
)
from litmusfuzz.corpus.herd.words import (
    BRANCHES,
    FENCES,
    FETCHES,
    KERNEL_ADDS,
    KERNEL_STEPS,
    LOADS,
    LOOPS,
    ORDERS,
    QUALIFIERS,
    REFUSED_TYPES,
    STORES,
    STRONG,
    TYPES,
)
from litmusfuzz.corpus.model import (
    CONTROL,
    MAX_NODES,
    MAX_VARIABLES,
    FreshNames,
    Graph,
    LitmusTest,
    MalformedTest,
    Node,
    Variable,
)
from litmusfuzz.corpus.ops import MAX_MAGNITUDE, ConstAttrs

OPERATORS: Final = {"+": "AddV2", "-": "Sub", "*": "Mul"}
_MAX_LINES: Final = 6


@dataclass(frozen=True, slots=True)
class _Load:
    variable: str


@dataclass(frozen=True, slots=True)
class _Register:
    name: str


@dataclass(frozen=True, slots=True)
class _Binary:
    operator: str
    left: _Expression
    right: _Expression


_Expression = int | _Load | _Register | _Binary


@dataclass(frozen=True, slots=True)
class _Statement:
    """`how` is assign (to a register), store, add or sub (to a variable)."""

    line: int
    how: str
    target: str
    value: _Expression


@dataclass(slots=True)
class _Source:
    """Parsed contents of a file, before they become a graph."""

    name: str
    doc: str = ""
    init: dict[str, int] = field(default_factory=dict)  # of variables and registers
    registers: dict[int, dict[str, int]] = field(default_factory=dict)  # by thread, of `init`
    dtypes: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)  # of each variable
    threads: list[list[_Statement]] = field(default_factory=list)
    weak: dict[str, list[int]] = field(default_factory=dict)  # lines, by what was strengthened
    updates: list[int] = field(default_factory=list)  # lines of fetch-and-adds


@dataclass(frozen=True, slots=True)
class Imported:
    """A test, the condition of its file, if any, and the locations that it lists.

    `condition` is over herd's locations; the test has the same one over its own names. `locations`
    are what herd shows in its states: those listed, then those that the condition names. `changes`
    says, one a line, where the test means something else than the file: a weak memory order was
    strengthened, for example.
    """

    test: LitmusTest
    condition: Condition | None
    locations: tuple[str, ...]
    changes: tuple[str, ...] = ()


def loads(text: str, source: str = "<text>") -> LitmusTest:
    """The litmus test in herd's text.

    Register r0 of thread P0 becomes the node ``P0_r0``, observed; a variable
    keeps its name if that is one of ours. `description` has the quoted comment, and where the
    test means something else than the text (`Imported.changes`).

    Raises
    ------
    FileError
        For anything that is wrong, or not read, in one line.
    """
    return parse(text, source).test


def parse(text: str, source: str = "<text>") -> Imported:
    """Read a test as `loads` does, with its condition."""
    if len(text) > MAX_BYTES:
        raise FileError(source, 0, (), f"is larger than {MAX_BYTES} bytes")
    scanner = Scanner(text, source)
    parsed = _header(scanner)
    _initial(scanner, parsed)
    while re.fullmatch(r"P[0-9]+", scanner.peek()):
        _thread(scanner, parsed)
    scanner.fields = ()
    if not parsed.threads:
        raise scanner.unexpected("a thread P0")
    if scanner.peek() not in {"", "(", *FINAL}:
        raise scanner.unexpected("a thread, 'locations' or a condition")
    places = {f"{n}:{s.target}" for n, t in enumerate(parsed.threads) for s in t}
    known = frozenset(places | parsed.init.keys() | parsed.dtypes.keys())
    line = scanner.line
    listed = read_locations(scanner, known)
    condition = read_condition(scanner, known)
    if scanner.peek():
        raise scanner.unexpected("the end")
    scanner.line = line
    shown = dict.fromkeys([*listed, *(condition.names if condition else ())])
    changes = _changes(parsed)
    test = _Build(scanner, parsed).test(condition, changes)
    return Imported(test, condition, tuple(shown), changes)


def _changes(parsed: _Source) -> tuple[str, ...]:
    """Where the test means something else than the file, one sentence each."""
    found = []
    if parsed.weak:
        what = "; ".join(f"{how} ({_lines(lines)})" for how, lines in parsed.weak.items())
        found.append(f"Strengthened to sequential consistency: {what}.")
    if parsed.updates:
        what = f"Fetch-and-add ({_lines(parsed.updates)})"
        found.append(f"{what}: indivisible under the model executor, not under rfc.")
    return tuple(found)


def _lines(lines: list[int]) -> str:
    """``line 3``, ``lines 3, 4 and 7``; of more than six, the first and their number."""
    each = list(dict.fromkeys(lines))
    if len(each) > _MAX_LINES:
        return f"{len(each)} lines from {each[0]} on"
    if len(each) == 1:
        return f"line {each[0]}"
    return f"lines {', '.join(map(str, each[:-1]))} and {each[-1]}"


def _header(scanner: Scanner) -> _Source:
    scanner.skip()
    first = re.compile(r"(\S+)[ \t]+([A-Za-z0-9_/.+\[\]-]+)").match(scanner.text, scanner.position)
    if not first:
        raise scanner.error("a test begins with C and its name")
    if first[1] != "C":
        raise scanner.error(f"a test for {first[1][:40]}; only C is read")
    scanner.go_to(first.end())
    parsed = _Source(re.sub(r"[/\[\]]", "_", first[2]))
    doc = re.compile(r'\s*"([^"]*)"').match(scanner.text, scanner.position)
    if doc:
        if CONTROL.search(doc[1].replace("\r", "")):
            raise scanner.error("control characters are not part of the format")
        parsed.doc = " ".join(doc[1].split())
        scanner.go_to(doc.end())
    # Further lines are for people, or `key=value` for tools.
    while scanner.peek() != "{":
        if not scanner.peek():
            raise scanner.unexpected("'{' before the initial values")
        end = re.compile(r"[^\n{(/]+|.", re.DOTALL).match(scanner.text, scanner.position)
        assert end
        scanner.go_to(end.end())
    return parsed


def _initial(scanner: Scanner, parsed: _Source) -> None:
    scanner.expect("{")
    scanner.fields = ("init",)
    while not scanner.accept("}"):
        if scanner.accept(";"):
            continue
        line = scanner.line
        dtype = _type(scanner) if _at_type(scanner) else ""
        scanner.accept("*")
        place = scanner.location()
        if scanner.peek() == "[":
            raise scanner.error(f"{place[:40]}: an array; only scalars are read")
        if place in parsed.init:
            raise scanner.error(f"{place[:40]} stands twice", line)
        parsed.init[place] = value = _initial_value(scanner) if scanner.accept("=") else 0
        thread, colon, register = place.partition(":")
        if colon:
            parsed.registers.setdefault(int(thread), {})[register] = value
        else:
            parsed.lines[place] = line
            _check_variables(scanner, parsed)
            if dtype:
                parsed.dtypes[place] = dtype
        if scanner.peek() != "}":
            scanner.expect(";")


def _check_variables(scanner: Scanner, parsed: _Source) -> None:
    """Refuse a variable too many now: names are made for all, and each thread may name all."""
    if len(parsed.lines) > MAX_VARIABLES:
        raise scanner.error(f"more than {MAX_VARIABLES} variables")


def _initial_value(scanner: Scanner) -> int:
    if scanner.accept("ATOMIC_INIT") or scanner.accept("ATOMIC_VAR_INIT"):
        scanner.expect("(")
        value = scanner.integer()
        scanner.expect(")")
        return value
    word = scanner.peek()
    if word == "{":
        raise scanner.error("an array; only scalars are read")
    if word == "&" or is_name(word):
        raise scanner.error("a pointer as a value is not read")
    return scanner.integer()


def _at_type(scanner: Scanner) -> bool:
    """True if a declaration begins here."""
    word = scanner.peek()
    if word in TYPES or word in QUALIFIERS or word in REFUSED_TYPES:
        return True
    return is_name(word) and (is_name(scanner.peek_after()) or scanner.peek_after() == "*")


def _type(scanner: Scanner) -> str:
    """The dtype of a C type."""
    dtype = ""
    while True:
        word = scanner.peek()
        if word == "_Atomic" and scanner.peek_after() == "(":
            scanner.take()
            scanner.expect("(")
            dtype = _type(scanner)
            scanner.expect(")")
        elif word in QUALIFIERS:
            scanner.take()
        elif word in TYPES and (not dtype or {dtype, TYPES[word]} != {"int32"}):
            scanner.take()
            dtype = "int64" if dtype == "int64" else TYPES[word]
        elif dtype:
            return dtype
        else:
            what = word[:40] if is_name(word) else "without a name"
            raise scanner.error(f"type {what}: only int, int64_t, long and their atomics are read")


def _thread(scanner: Scanner, parsed: _Source) -> None:
    number = len(parsed.threads)
    scanner.fields = ()
    if scanner.peek() != f"P{number}":
        message = f"threads are P0, P1, ... in order: expected P{number}, got {scanner.peek()[:40]}"
        raise scanner.error(message)
    if number == MAX_NODES:
        raise scanner.error(f"more than {MAX_NODES} threads")
    line = scanner.line
    scanner.take()
    scanner.fields = (f"P{number}",)
    scanner.expect("(")
    scanner.ocaml = False
    variables: list[str] = []
    if scanner.peek() == "void" and scanner.peek_after() == ")":
        scanner.take()
    while not scanner.accept(")"):
        if variables:
            scanner.expect(",")
        dtype = _type(scanner)
        if not scanner.accept("*"):
            raise scanner.error("a parameter is a pointer to a variable, as in int *x")
        if scanner.peek() == "*":
            raise scanner.error("a pointer as a value is not read")
        while scanner.peek() in QUALIFIERS:
            scanner.take()
        parsed.lines.setdefault(scanner.peek(), scanner.line)
        name = scanner.name("a variable")
        _check_variables(scanner, parsed)
        if parsed.dtypes.setdefault(name, dtype) != dtype:
            raise scanner.error(f"{name[:40]} is {parsed.dtypes[name]} elsewhere")
        variables.append(name)
    scanner.expect("{")
    statements = _Statements(scanner, frozenset(variables), number, parsed)
    while not scanner.accept("}"):
        statements.statement()
    if not statements.accesses:
        raise scanner.error("a thread without an access to a variable", line)
    parsed.threads.append(statements.found)
    scanner.ocaml = True


class _Statements:
    """Reads the statements of one thread."""

    def __init__(
        self, scanner: Scanner, variables: frozenset[str], number: int, parsed: _Source
    ) -> None:
        self.scanner = scanner
        self.variables = variables
        self.parsed = parsed
        self.found: list[_Statement] = []
        self.accesses = 0
        self.here = 0  # accesses of the present statement
        self.depth = 0
        self.assigned = set(parsed.registers.get(number, ()))

    def statement(self) -> None:
        scanner = self.scanner
        self.here = 0
        word = scanner.peek()
        line = scanner.line
        if word == ";":
            scanner.take()
        elif word in BRANCHES:
            raise scanner.error(f"{word}: branches are not read")
        elif word in LOOPS:
            raise scanner.error(f"{word}: loops are not read")
        elif word == "{":
            raise scanner.error("a block inside a thread is not read")
        elif word == "*":
            target = self.variable("*x")
            self.weaker("plain accesses", line)
            scanner.expect("=")
            self.add(line, "store", target, self.expression())
        elif _at_type(scanner) and scanner.peek_after() != "(":
            _type(scanner)
            if scanner.peek() == "*":
                raise scanner.error("a pointer in a register is not read")
            if scanner.peek_after() == ";":
                scanner.name("a register")
                scanner.expect(";")
            else:
                self.assign(line)
        elif is_name(word) and scanner.peek_after() == "(":
            self.call(line)
        elif is_name(word):
            self.assign(line)
        else:
            raise scanner.unexpected("a statement")

    def add(self, line: int, how: str, target: str, value: _Expression) -> None:
        self.scanner.expect(";")
        self.here += how != "assign"
        if self.here > 1:
            raise self.scanner.error("more than one access in a statement", line)
        self.accesses += self.here
        self.found.append(_Statement(line, how, target, value))

    def assign(self, line: int) -> None:
        scanner = self.scanner
        target = scanner.name("a register")
        if target in self.variables:
            raise scanner.error(f"{target[:40]} is a pointer to a variable, not a register")
        if scanner.peek() != "=":
            raise scanner.unexpected("'='")
        scanner.take()
        value = self.expression()
        self.add(line, "assign", target, value)
        self.assigned.add(target)

    def call(self, line: int) -> None:
        scanner = self.scanner
        function = scanner.take()
        scanner.expect("(")
        if function in FENCES:
            if scanner.peek() in ORDERS:
                scanner.take()
            scanner.expect(")")
            scanner.expect(";")
        elif function in STORES:
            form, ordered = STORES[function]
            target = self.variable(form)
            scanner.expect(",")
            value = self.expression()
            self.close(function, line, ordered=ordered)
            self.add(line, "store", target, value)
        elif function in FETCHES:
            how, ordered = FETCHES[function]
            target = self.variable("x")
            scanner.expect(",")
            value = self.expression()
            self.close(function, line, ordered=ordered)
            self.parsed.updates.append(line)
            self.add(line, how, target, value)
        elif function in KERNEL_ADDS:
            value = self.expression()
            scanner.expect(",")
            target = self.variable("x")
            self.close(function, line, ordered=False)
            self.parsed.updates.append(line)
            self.add(line, KERNEL_ADDS[function], target, value)
        elif function in KERNEL_STEPS:
            target = self.variable("x")
            self.close(function, line, ordered=False)
            self.parsed.updates.append(line)
            self.add(line, KERNEL_STEPS[function], target, 1)
        elif function in LOADS:
            raise scanner.error(f"{function}: its value is dropped", line)
        else:
            raise scanner.error(f"{function[:60]} is not read", line)

    def close(self, function: str, line: int, *, ordered: bool) -> None:
        """The end of a call's arguments."""
        order = function
        if ordered:
            self.scanner.expect(",")
            if self.scanner.peek() not in ORDERS:
                raise self.scanner.unexpected("a memory order")
            order = self.scanner.take()
        self.scanner.expect(")")
        if order not in STRONG:
            self.weaker(order, line)

    def weaker(self, how: str, line: int) -> None:
        """Note an access that is sequentially consistent here, and weaker in the file."""
        self.parsed.weak.setdefault(how, []).append(line)

    def variable(self, form: str) -> str:
        scanner = self.scanner
        if form == "*x":
            scanner.expect("*")
        elif scanner.peek() in ("*", "&"):
            raise scanner.unexpected("a variable")
        name = scanner.name("a variable")
        if name not in self.variables:
            raise scanner.error(f"{name[:40]} is no parameter of this thread")
        return name

    def expression(self) -> _Expression:
        """Sums and differences of products."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.scanner.error("is nested too deeply")
        left = self.product()
        while self.scanner.peek() in ("+", "-"):
            operator = self.scanner.take()
            left = self.binary(operator, left, self.product())
        word = self.scanner.peek()
        if word not in (";", ")", ","):
            known = word in ("^", "&", "|", "/", "%", "==", "!=", "<", ">", "<=", ">=", "&&", "||")
            if known:
                raise self.scanner.error(f"operator {word}: only + - * are read")
            raise self.scanner.unexpected("an operator or the end of the expression")
        self.depth -= 1
        return left

    def product(self) -> _Expression:
        left = self.factor()
        while self.scanner.accept("*"):
            left = self.binary("*", left, self.factor())
        return left

    def binary(self, operator: str, left: _Expression, right: _Expression) -> _Expression:
        """Join two operands; constants are folded."""
        if isinstance(left, int) and isinstance(right, int):
            value = {"+": left + right, "-": left - right, "*": left * right}[operator]
            if abs(value) >= MAX_MAGNITUDE:
                raise self.scanner.error(f"magnitude must be below 2**24, got {value}")
            return value
        if max(_height(left), _height(right)) >= MAX_DEPTH:
            raise self.scanner.error("an expression of too many parts")
        return _Binary(operator, left, right)

    def factor(self) -> _Expression:
        scanner = self.scanner
        word = scanner.peek()
        if word == "-":
            scanner.take()
            return self.binary("-", 0, self.factor_again())
        if is_number(word):
            value = scanner.integer()
            if abs(value) >= MAX_MAGNITUDE:
                raise scanner.error(f"magnitude must be below 2**24, got {value}")
            return value
        if word == "(":
            scanner.take()
            if scanner.peek() in TYPES or scanner.peek() in QUALIFIERS | REFUSED_TYPES:
                raise scanner.error("a cast is not read")
            value_inside = self.expression()
            scanner.expect(")")
            return value_inside
        if word == "*":
            self.here += 1
            self.weaker("plain accesses", scanner.line)
            return _Load(self.variable("*x"))
        if word == "&":
            raise scanner.error("a pointer as a value is not read")
        if not is_name(word):
            raise scanner.unexpected("a value")
        if scanner.peek_after() == "(":
            return self.load()
        if word in self.variables:
            raise scanner.error(f"{word[:40]}: a pointer as a value is not read")
        if word not in self.assigned:
            raise scanner.error(f"register {word[:40]} has no value yet")
        return _Register(scanner.take())

    def factor_again(self) -> _Expression:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.scanner.error("is nested too deeply")
        value = self.factor()
        self.depth -= 1
        return value

    def load(self) -> _Expression:
        scanner = self.scanner
        function = scanner.peek()
        if function not in LOADS:
            atomic = "atomic" in function or "xchg" in function
            why = ": a read-modify-write whose value is used" if atomic else ""
            raise scanner.error(f"{function[:60]}{why} is not read")
        scanner.take()
        scanner.expect("(")
        form, ordered = LOADS[function]
        line = scanner.line
        variable = self.variable(form)
        self.close(function, line, ordered=ordered)
        self.here += 1
        return _Load(variable)


def _height(expression: _Expression) -> int:
    """At most `MAX_DEPTH`, which `_Statements.binary` sees to."""
    if isinstance(expression, _Binary):
        return 1 + max(_height(expression.left), _height(expression.right))
    return 0


class _Build:
    """Builds nodes from statements."""

    def __init__(self, scanner: Scanner, parsed: _Source) -> None:
        self.scanner = scanner
        self.parsed = parsed
        self.lines: dict[str, int] = {}  # of each node
        self.nodes: list[Node] = []
        self.dtypes: dict[str, str] = {}  # of each node's value
        self.observed: list[str] = []
        self.constants: dict[tuple[str, int], str] = {}
        self.variables: dict[str, Variable] = {}
        self.thread = 0
        self.line = 1
        self.previous: tuple[str, ...] = ()
        self.registers: dict[str, int | str] = {}  # of the thread: a number, or a node
        self.names = FreshNames(
            f"P{number}_{statement.target}"
            for number, thread in enumerate(parsed.threads)
            for statement in thread
        )

    def test(self, condition: Condition | None, changes: tuple[str, ...]) -> LitmusTest:
        parsed = self.parsed
        self.scanner.fields = ()
        resources = FreshNames()
        for place in dict.fromkeys([*(p for p in parsed.init if ":" not in p), *parsed.dtypes]):
            dtype = parsed.dtypes.get(place, "int32")
            self.variables[place] = Variable(
                resources.like(_our_name(place)), dtype, (), parsed.init.get(place, 0)
            )
        self.names.take(*(variable.name for variable in self.variables.values()))
        for number, statements in enumerate(parsed.threads):
            self.chain(number, statements)
        lines = [*([parsed.doc] if parsed.doc else []), *changes]
        if condition is not None:
            condition = None if condition.prop == TRUE else self.ours(condition)
        try:
            return LitmusTest(
                parsed.name,
                tuple(self.variables.values()),
                (Graph("main", tuple(self.nodes)),),
                tuple(self.observed),
                "\n".join(lines),
                condition=condition,
            )
        except MalformedTest as error:
            raise self.refused(error) from None

    def ours(self, condition: Condition) -> Condition:
        """The condition over the names of the test.

        A register that the thread never assigns keeps its initial value, and has no name here.
        """
        initial = self.parsed.init

        def name(place: str) -> str | int:
            thread, colon, register = place.partition(":")
            if not colon:
                return self.variables[place].name
            ours = f"P{thread}_{register}"
            return ours if ours in self.observed else initial.get(place, 0)

        def change(atom: Atom) -> Prop:
            left = name(atom.left)
            right = name(atom.right.text) if isinstance(atom.right, Name) else atom.right
            if isinstance(left, int) and isinstance(right, str):
                left, right = right, left
            if isinstance(left, int):
                return TRUE if (left == right) is atom.equal else FALSE
            return Atom(left, Name(right) if isinstance(right, str) else right, atom.equal)

        return condition.mapped(change)

    def refused(self, error: MalformedTest) -> FileError:
        """Report an error of the format at the line of the statement at fault."""
        line = 1
        if error.path[:1] == ("graphs",) and len(error.path) > 2:
            line = self.lines.get(str(error.path[2]), 1)
        elif error.path[:1] == ("variables",) and len(error.path) > 1:
            ours = {variable.name: place for place, variable in self.variables.items()}
            line = self.parsed.lines.get(ours.get(str(error.path[1]), ""), 1)
        return FileError(self.scanner.source, line, error.path[-1:], error.message)

    def chain(self, number: int, statements: list[_Statement]) -> None:
        self.thread = number
        self.previous = ()
        self.registers = dict(self.parsed.registers.get(number, {}))
        left = Counter(s.target for s in statements if s.how == "assign")
        for statement in statements:
            self.line = statement.line
            if statement.how != "assign":
                self.write(statement)
                continue
            # A final condition sees only the last value of a register.
            target = statement.target
            left[target] -= 1
            name = f"P{number}_{target}" if left[target] == 0 else self.fresh(f"{target}_v")
            self.registers[target] = self.value(statement.value, name, last=left[target] == 0)
        assigned = dict.fromkeys(s.target for s in statements if s.how == "assign")
        self.observed += [f"P{number}_{register}" for register in assigned]

    def write(self, statement: _Statement) -> None:
        variable = self.variables[statement.target]
        op = {
            "store": "AssignVariableOp",
            "add": "AssignAddVariableOp",
            "sub": "AssignSubVariableOp",
        }[statement.how]
        value = self.value(statement.value, "", last=False)
        operand = self.operand(value, variable.dtype)
        if self.dtypes[operand] != variable.dtype:
            raise FileError(
                self.scanner.source,
                self.line,
                (f"P{self.thread}",),
                f"{statement.target} is {variable.dtype}, the value {self.dtypes[operand]}",
            )
        self.effect(Node(self.fresh("w"), op, (operand,), (variable.name,), self.previous))

    def value(self, expression: _Expression, name: str, *, last: bool) -> int | str:
        """The number or the node that stands for an expression.

        A node of its own under `name` if it is the register's last value; else
        under `name`, if given, where a node is made at all.
        """
        result: int | str
        if isinstance(expression, _Load):
            variable = self.variables[expression.variable]
            result = name or self.fresh("t")
            self.dtypes[result] = variable.dtype
            self.effect(Node(result, "ReadVariableOp", (), (variable.name,), self.previous))
            return result
        if isinstance(expression, _Binary):
            left = self.value(expression.left, "", last=False)
            right = self.value(expression.right, "", last=False)
            return self.binary(expression.operator, left, right, name)
        result = (
            self.registers[expression.name] if isinstance(expression, _Register) else expression
        )
        if not last:
            return result
        if isinstance(result, int):
            self.pure(Node(name, "Const", attrs=ConstAttrs("int32", (), result)), "int32")
            return result
        self.pure(Node(name, "Identity", (result,)), self.dtypes[result])
        return name

    def binary(self, operator: str, left: int | str, right: int | str, name: str) -> str:
        known = [self.dtypes[each] for each in (left, right) if isinstance(each, str)]
        dtype = known[0] if known else "int32"
        if len(set(known)) > 1:
            message = f"{operator} of {known[0]} and {known[1]}"
            raise FileError(self.scanner.source, self.line, (f"P{self.thread}",), message)
        operands = (self.operand(left, dtype), self.operand(right, dtype))
        result = name or self.fresh("t")
        self.pure(Node(result, OPERATORS[operator], operands), dtype)
        return result

    def operand(self, value: int | str, dtype: str) -> str:
        """The node for a value; each number has one constant."""
        if isinstance(value, str):
            return value
        if (dtype, value) not in self.constants:
            sign = "m" if value < 0 else ""
            name = self.names.numbered(f"c{sign}{abs(value)}_")
            self.constants[dtype, value] = name
            self.pure(Node(name, "Const", attrs=ConstAttrs(dtype, (), value)), dtype)
        return self.constants[dtype, value]

    def pure(self, node: Node, dtype: str) -> None:
        self.dtypes[node.name] = dtype
        self.lines[node.name] = self.line
        self.nodes.append(node)

    def effect(self, node: Node) -> None:
        self.lines[node.name] = self.line
        self.nodes.append(node)
        self.previous = (node.name,)

    def fresh(self, prefix: str) -> str:
        return self.names.numbered(f"P{self.thread}_{prefix}")


def _our_name(name: str) -> str:
    """The name itself if a resource can have it, else one made of it."""
    return name if name[0].isalpha() else f"v{re.sub(r'[^A-Za-z0-9_]', '_', name)}"
