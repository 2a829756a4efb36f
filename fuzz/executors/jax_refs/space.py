"""The configuration space of `jax_refs`: how a program is written, and how JAX transforms it.

The values of the first settings are ways to write the same program, those of the others are
transformations of it. None of them changes the outcome.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.executors.configuration_space import ConfigurationSpace, Exclusion
from litmusfuzz.fuzz.executors.protocol import Config

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from litmusfuzz.corpus.textfile import Setting
    from litmusfuzz.fuzz.executors.configuration_space import Point, Value

FORBIDDEN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "twice": "one reference is passed as two arguments",
        "closure": "one reference is an argument, and closed over too",
        "freeze": "a reference is read after it was frozen",
        "checkpoint": "jax.checkpoint of a function that is impure",
    }
)
"""What JAX's page on references forbids, by its name as a value of the setting."""
_VALUES: Final[Mapping[str, tuple[Setting, ...]]] = MappingProxyType(
    {
        "compiled": ("", "jit", "aot", "export"),
        "parts": ("", "runs", "pieces", "nested"),
        "references": ("argument", "pytree", "closure", "inside"),
        "final": ("read", "freeze", "apart"),
        "loops": ("python", "while", "fori", "scan"),
        "unroll": (1, 2),
        "reverse": (False, True),
        "conditionals": ("python", "cond", "switch"),
        "bodies": ("closure", "argument"),
        "calls": ("inline", "jit", "checkpoint", "custom_jvp", "custom_vjp"),
        "reads": ("index", "get", "pieces", "view"),
        "writes": ("index", "set", "swap", "pieces", "linked"),
        "updates": ("read_write", "addupdate", "swap"),
        "indices": ("array", "static", "negative", "beyond", "scalar", "slice"),
        "batch": ("", "vmap", "vmap_last", "vmap_all", "shard_map"),
        "derivative": ("vjp", "accumulated", "grad", "jvp", "linearize", "jacfwd", "jacrev"),
        "checkpoint": ("", "everything", "nothing", "dots"),
        "donate": (False, True),
        "devices": (1, 2),
        "platform": ("cpu", "gpu"),
        "x64": (True, False),
        "forbidden": ("", *FORBIDDEN),
    }
)


GUARANTEES: Final = "sequential"
"""The memory model of all configurations."""

ALIASES: Final = ("twice", "closure")
"""Those in which the bodies of conditionals and calls have each reference in two ways."""
PIECE: Final = 3
"""Nodes of a piece of a run that has a `jit` of its own."""
COPIES: Final = 3
"""Copies of a program under `jax.vmap`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A point of the space.

    Parameters
    ----------
    compiled : str
        The whole program, all runs of the test, under ``jit``; compiled ahead of time (``aot``);
        exported, serialized, and called (``export``); or "" for eager execution.
    parts : str
        Each run (``runs``), or each piece of a run (``pieces``), in a `jit` of its own; or each
        run in a `jit` within a `jit` (``nested``).
    references : str
        How a run gets its references: as arguments, in a pytree, by closure; or ``inside``: the
        program takes arrays, and creates the references.
    final : str
        How final contents are taken: ``read``, ``freeze``, or ``apart``: the program returns what
        is observed, and another one, which is the same otherwise, the final contents. One with
        gradients returns all.
    loops : str
        ``while`` (`lax.while_loop`), ``fori`` (`lax.fori_loop`), ``scan`` (`lax.scan`); or
        ``python``: Python's loop, which a trace unrolls to its bound.
    unroll : int
        Of `lax.scan` and `lax.fori_loop`.
    reverse : bool
        Of `lax.scan`.
    conditionals : str
        ``cond`` (`lax.cond`), ``switch`` (`lax.switch`); or ``python``: Python's ``if`` where the
        predicate is known, and else `lax.cond`.
    bodies : str
        How bodies get references: by closure, or as arguments.
    calls : str
        How functions are called. Functions without references only can be given to
        `jax.checkpoint`, `jax.custom_jvp` and `jax.custom_vjp`; others are inlined then.
    reads, writes, updates : str
        How references are read, written and updated. A write that is ``linked`` adds zero times
        what was there.
    indices : str
        How rows are named.
    batch : str
        The program under `jax.vmap`, over copies with other contents; or under `jax.shard_map`,
        each copy on a device of its own.
    derivative : str
        How gradients are computed, of a test that has some; ``accumulated``: added to references,
        by ``with_refs`` of `jax.vjp`'s function. Such a program takes arrays and creates
        the references, whatever `references` says.
    checkpoint : str
        `jax.checkpoint` around a program that creates its references: by its policies
        ``everything_saveable``, ``nothing_saveable``, ``dots_saveable``.
    donate : bool
        Donate the arrays that the program takes.
    devices : int
        CPU devices over which the rows of the arrays are sharded that the program takes, and so
        the references; what cannot be sharded evenly is replicated.
    platform : str
        Where arrays are, and programs run: ``cpu``, or ``gpu`` for the first GPU.
    x64 : bool
        `jax_enable_x64`.
    forbidden : str
        What of `FORBIDDEN` the program does, or "".
    """

    compiled: str = ""
    parts: str = ""
    references: str = "argument"
    final: str = "read"
    loops: str = "python"
    unroll: int = 1
    reverse: bool = False
    conditionals: str = "python"
    bodies: str = "closure"
    calls: str = "inline"
    reads: str = "index"
    writes: str = "index"
    updates: str = "read_write"
    indices: str = "array"
    batch: str = ""
    derivative: str = "vjp"
    checkpoint: str = ""
    donate: bool = False
    devices: int = 1
    platform: str = "cpu"
    x64: bool = True
    forbidden: str = ""

    @classmethod
    def of(cls, config: Config) -> Settings:
        """The settings of a configuration; what a file does not name is plain."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in config.settings if name in known})  # type: ignore[arg-type]


def _other(setting: str, *values: Setting) -> tuple[str, tuple[Setting, ...]]:
    """The values of a setting except for these."""
    return setting, tuple(each for each in _VALUES[setting] if each not in values)


def _exclusions() -> Iterator[Exclusion]:
    inside = ("references", ("inside",))
    outside = _other("references", "inside")
    closed = ("references", ("closure",))
    yield Exclusion(("compiled", ("export",)), outside, "JAX exports no function of references")
    yield Exclusion(("final", ("freeze",)), ("references", ("pytree",)), "arguments cover it")
    yield Exclusion(("reverse", (True,)), _other("loops", "scan"), "only `lax.scan` runs backwards")
    yield Exclusion(
        ("unroll", (2,)), ("loops", ("python", "while")), "these loops are not unrolled by JAX"
    )
    yield Exclusion(_other("batch", ""), closed, "the page forbids it")
    yield Exclusion(_other("checkpoint", ""), outside, "the page forbids it")
    yield Exclusion(("donate", (True,)), outside, "references are always donated")
    yield Exclusion(("donate", (True,)), ("compiled", ("", "export")), "only `jit` donates")
    yield Exclusion(inside, ("parts", ("pieces",)), "arguments cover it")
    apart = ("final", ("apart",))
    yield Exclusion(apart, outside, "what another program does to a reference is observed")
    yield Exclusion(apart, ("compiled", ("aot", "export")), "`jit` covers it")
    yield Exclusion(apart, ("donate", (True,)), "two programs take the arrays")
    yield Exclusion(apart, ("batch", ("shard_map",)), "`vmap` covers it")
    mapped = ("batch", ("shard_map",))
    yield Exclusion(mapped, outside, "outside, references are sharded by `devices`")
    yield Exclusion(mapped, ("compiled", ("", "export")), "JAX wants it in a `jit`")
    sharded = ("devices", (2,))
    yield Exclusion(mapped, sharded, "it has devices of its own")
    yield Exclusion(sharded, ("compiled", ("", "export")), "a `jit` keeps to the devices")
    for several in (mapped, sharded):
        yield Exclusion(("platform", ("gpu",)), several, "its devices are virtual ones of the CPU")
    impure = ("forbidden", ("checkpoint",))
    yield Exclusion(impure, _other("calls", "checkpoint"), "it is about calls")
    aliased = ("forbidden", ALIASES)
    yield Exclusion(aliased, ("bodies", ("argument",)), "bodies get references in both ways")
    frozen = ("forbidden", ("freeze",))
    yield Exclusion(frozen, _other("final", "read"), "a read follows it")


def _weaker() -> Iterator[tuple[Value, tuple[Mapping[str, Setting], ...]]]:
    """What shows under one transformation, shows under a simpler one that it contains."""
    whole: Mapping[str, Setting] = {"compiled": "jit"}
    for how in ("aot", "export"):
        yield ("compiled", how), (whole,)
    yield ("parts", "runs"), (whole,)
    for part in ("pieces", "nested"):
        yield ("parts", part), (whole, {"parts": "runs"})
    # Bodies of conditionals and calls are traced as well.
    yield ("conditionals", "cond"), (whole,)
    yield ("conditionals", "switch"), (whole, {"conditionals": "cond"})
    yield ("calls", "jit"), (whole,)
    yield ("batch", "vmap_all"), ({"batch": "vmap"},)
    for policy in ("everything", "dots"):
        yield ("checkpoint", policy), ({"checkpoint": "nothing"},)


SPACE: Final = ConfigurationSpace(
    values=_VALUES,
    exclusions=tuple(_exclusions()),
    words=MappingProxyType(
        {
            ("compiled", "jit"): "under `jit`",
            ("compiled", "aot"): "compiled ahead of time",
            ("compiled", "export"): "exported",
            ("references", "inside"): "with references created inside",
            ("references", "closure"): "with references closed over",
            ("final", "apart"): "without its final contents",
            ("loops", "scan"): "in `lax.scan`",
            ("loops", "fori"): "in `lax.fori_loop`",
            ("batch", "vmap"): "under `vmap`",
            ("batch", "shard_map"): "under `shard_map`",
            ("devices", 2): "sharded over two devices",
            ("platform", "gpu"): "on a GPU",
        }
    ),
    plain_words="in eager JAX",
    weaker=MappingProxyType(dict(_weaker())),
    # Most machines have no GPU.
    seldom=("forbidden", "platform"),
)
assert SPACE.plain == asdict(Settings()), "the defaults are plain"

_PRESETS: Final[Mapping[str, Mapping[str, Setting]]] = MappingProxyType(
    {
        "eager": {},
        "eager_lax": {"loops": "while", "conditionals": "cond"},
        "jit": {"compiled": "jit", "loops": "while"},
        "scan": {"compiled": "jit", "loops": "scan", "conditionals": "cond"},
        "fori": {"compiled": "jit", "loops": "fori", "bodies": "argument"},
        "unrolled": {"compiled": "jit", "loops": "scan", "unroll": 2, "reverse": True},
        "switch": {"compiled": "jit", "conditionals": "switch", "bodies": "argument"},
        "pieces": {"parts": "pieces"},
        "nested": {"compiled": "jit", "parts": "nested", "references": "pytree", "calls": "jit"},
        "closure": {"compiled": "jit", "references": "closure", "loops": "scan"},
        "inside": {"compiled": "jit", "references": "inside", "final": "freeze"},
        "apart": {
            "compiled": "jit",
            "references": "inside",
            "final": "apart",
            "indices": "slice",
        },
        "swap": {"compiled": "jit", "writes": "swap", "updates": "swap", "reads": "get"},
        "addupdate": {"compiled": "jit", "updates": "addupdate", "indices": "negative"},
        "aot": {"compiled": "aot", "loops": "while"},
        "export": {"compiled": "export", "references": "inside"},
        "vmap": {"compiled": "jit", "batch": "vmap", "loops": "scan"},
        "gradient": {
            "compiled": "jit",
            "references": "inside",
            "loops": "scan",
            "writes": "linked",
        },
        "sharded": {"compiled": "jit", "loops": "scan", "devices": 2},
        "shard_map": {"compiled": "jit", "references": "inside", "batch": "shard_map"},
        "jvp": {"compiled": "jit", "loops": "scan", "derivative": "jvp"},
        "x32": {"compiled": "jit", "x64": False},
        "gpu": {"platform": "gpu"},
        "gpu_scan": {
            "compiled": "jit",
            "loops": "scan",
            "conditionals": "cond",
            "platform": "gpu",
        },
        "forbidden_twice": {"conditionals": "cond", "calls": "jit", "forbidden": "twice"},
        "forbidden_closure": {
            "compiled": "jit",
            "loops": "scan",
            "calls": "jit",
            "forbidden": "closure",
        },
        "forbidden_freeze": {"compiled": "jit", "references": "inside", "forbidden": "freeze"},
        "forbidden_checkpoint": {
            "references": "inside",
            "calls": "checkpoint",
            "writes": "linked",
            "forbidden": "checkpoint",
        },
    }
)


def _named(name: str, point: Mapping[str, Setting]) -> Config:
    return Config(name, GUARANTEES, tuple(point.items()))


CONFIGURATIONS: Final = tuple(
    _named(name, {**SPACE.plain, **changes}) for name, changes in _PRESETS.items()
)


def configuration_at(point: Mapping[str, Setting]) -> Config:
    """The configuration with these settings: a preset, or else named by them."""
    whole = {**SPACE.plain, **point}
    for each in CONFIGURATIONS:
        if dict(each.settings) == whole:
            return each
    return _named(SPACE.name(whole), whole)


def point_of(config: Config) -> Point | None:
    """The point of a configuration; None if the space does not have it."""
    point = {**SPACE.plain, **dict(config.settings)}
    if point.keys() != SPACE.values.keys():
        return None
    known = all(point[setting] in values for setting, values in SPACE.values.items())
    return point if known else None
