"""Writes docs/ops.md: every op of TensorFlow's registry, covered or with the reason why not.

``python -m tests.docs.registry`` writes the page; `test_ops_page.py` compares it with the table
of ops and the installed TensorFlow.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.ops import ABSTRACT_OPS, COMPUTED, DEFINED_OPS, OPS, Kind
from litmusfuzz.corpus.pure import ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE: Final = Path(__file__).parents[2] / "docs" / "ops.md"
WIDTH: Final = 108
_EXACT: Final = {1, 2, 3, 9, 10}
"""DataType numbers of float32, float64, int32, int64, bool."""
_STRING, _RESOURCE, _VARIANT = 7, 20, 21
_RANDOM: Final = re.compile(
    r"Random|Multinomial|Sampler|SampleDistorted|Uniform|Sobol|Shuffle|TruncatedNormal|KMC2|Kmeans"
)
_QUANTIZED: Final = re.compile(r"Quanti[sz]|FakeQuant|Requantiz|Dequantiz")
_INTERNAL: Final = re.compile(r"_|Xla|Debug|Old$|ConstructionFails$|CheckPinned$")
_IN_PLACE: Final = {
    *("InplaceAdd", "InplaceSub", "InplaceUpdate", "ParallelConcat", "Copy", "CopyHost"),
    *("ImmutableConst", "HostConst", "FakeParam", "PyFuncStateless", "BatchFunction", "Unbatch"),
    *("UnbatchGrad", "GetDeadline", "MapDefun"),
}
_CONTROL: Final = {
    *("Enter", "Exit", "NextIteration", "Merge", "Switch", "LoopCond", "If", "While", "Case"),
    *("RefEnter", "RefExit", "RefMerge", "RefNextIteration", "RefSwitch", "RefSelect"),
    *(
        "StatelessIf",
        "StatelessWhile",
        "StatelessCase",
        "ControlTrigger",
        "Abort",
        "ForLoop",
        "For",
    ),
    *("PartitionedCall", "StatefulPartitionedCall", "SymbolicGradient", "RemoteCall"),
}
_HELPERS: Final = {
    *("VarHandleOp", "FIFOQueueV2", "MutexV2", "MutexLock", "ConsumeMutexLock", "Placeholder"),
    *("Digamma", "_Send", "_Recv", "_HostSend", "_HostRecv"),
}
_INEXACT: Final = {
    *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "BesselI0", "BesselI0e"),
    *("BesselI1", "BesselI1e", "BesselJ0", "BesselJ1", "BesselK0", "BesselK0e", "BesselK1"),
    *("BesselK1e", "BesselY0", "BesselY1", "Betainc", "Cos", "Cosh", "Dawsn", "Digamma"),
    *("Erf", "Erfc", "Erfinv", "Exp", "Expint", "Expm1", "FresnelCos", "FresnelSin", "Igamma"),
    *("IgammaGradA", "Igammac", "Lgamma", "Log", "Log1p", "Ndtri", "Polygamma", "Rsqrt"),
    *(
        "RsqrtGrad",
        "Sigmoid",
        "Sin",
        "Sinh",
        "Spence",
        "Sqrt",
        "SqrtGrad",
        "Tan",
        "Tanh",
        "Xlog1py",
    ),
    *("Xlogy", "Zeta", "Xdivy", "DivNoNan", "RealDiv", "Reciprocal", "Inv", "NextAfter", "Elu"),
    *("Selu", "SeluGrad", "Softplus", "SoftplusGrad", "Softsign", "SoftsignGrad", "Softmax"),
    *("LogSoftmax", "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"),
    *("SparseSoftmax", "CumulativeLogsumexp", "EuclideanNorm", "Mean", "L2Loss", "LinSpace"),
    *("AvgPool", "AvgPoolGrad", "AvgPool3D", "AvgPool3DGrad", "LRN", "LRNGrad", "Lu", "Qr", "Svd"),
    *("Cholesky", "CholeskyGrad", "BatchCholesky", "BatchCholeskyGrad", "Eig", "SelfAdjointEigV2"),
    *("SelfAdjointEig", "BatchSelfAdjointEig", "BatchSelfAdjointEigV2", "BatchSvd"),
    *("MatrixInverse", "BatchMatrixInverse", "MatrixDeterminant", "BatchMatrixDeterminant"),
    *("LogMatrixDeterminant", "MatrixSolve", "BatchMatrixSolve", "MatrixSolveLs"),
    *("BatchMatrixSolveLs", "MatrixTriangularSolve", "BatchMatrixTriangularSolve"),
    *("MatrixExponential", "MatrixLogarithm", "MatrixSquareRoot", "TridiagonalSolve"),
    *("BandedTriangularSolve", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
    *("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"),
    *("BatchNormWithGlobalNormalization", "BatchNormWithGlobalNormalizationGrad"),
    *("SegmentMean", "SparseSegmentMean", "SparseSegmentMeanGrad", "SparseSegmentSqrtN"),
    *("SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtNGrad", "SparseSegmentMeanGradV2"),
    *("SparseSegmentSqrtNWithNumSegments", "SparseSegmentSqrtNGradV2", "SparseDenseCwiseDiv"),
    *("ResizeBilinear", "ResizeBilinearGrad", "ResizeBicubic", "ResizeBicubicGrad", "ResizeArea"),
    *("ScaleAndTranslate", "ScaleAndTranslateGrad", "CropAndResize", "CropAndResizeGradImage"),
    *("CropAndResizeGradBoxes", "AdjustContrast", "AdjustContrastv2", "AdjustHue"),
    *("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D", "RFFT", "RFFT2D", "RFFT3D", "IRFFT"),
    *("IRFFT2D", "IRFFT3D", "AudioSpectrogram", "Mfcc", "EditDistance", "DrawBoundingBoxes"),
    *("DrawBoundingBoxesV2", "ExtractGlimpse", "ExtractGlimpseV2", "HistogramFixedWidth"),
    *("AdjustSaturation", "RGBToHSV", "HSVToRGB", "ImageProjectiveTransformV2"),
    *("ImageProjectiveTransformV3", "FractionalAvgPool", "FractionalAvgPoolGrad"),
    *("FusedResizeAndPadConv2D", "Angle", "MirrorPadV2", "CTCLoss", "CTCLossV2"),
}
"""Ops whose results on integers are no integers, or are rounded."""
_ORDER: Final = (
    "no kernel for CPUs",
    "stateful",
    "internal",
    "control flow, and calls",
    "written in place",
    "variants, handles and references",
    "strings",
    "random",
    "quantized",
    "no kernel for the dtypes of tests",
    "not exact on integers",
    "several results",
    "deprecated",
    "not covered yet",
)
_WHY: Final = {
    "no kernel for CPUs": "Compilers and other devices have them, or graphs only for a while.",
    "stateful": "Other resources, input and output, devices, and what must not be run twice.",
    "control flow, and calls": "Tests have loops, conditionals and calls of their own.",
    "variants, handles and references": "Data sets, maps, arrays of tensors of the first "
    "generations, variables of the first: tests hold tensors of numbers, and lists of them.",
    "internal": "TensorFlow writes them itself, or its compilers do.",
    "written in place": "Not functions of their inputs, though they are registered as stateless.",
    "strings": "Tests hold numbers only.",
    "random": "A function of its inputs, or not, but none of integers.",
    "quantized": "Their dtypes are not among those of tests.",
    "no kernel for the dtypes of tests": "Tests have int32, int64, float32, float64, and bool.",
    "not exact on integers": "The result is no integer, or rounded: no two kernels need agree.",
    "several results": "Tests have others with several results; these are not covered yet.",
    "deprecated": "TensorFlow refuses a graph of today with one.",
    "not covered yet": "Nothing stands against them.",
}


def registry() -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The ops of the installed TensorFlow, and the kernels for CPUs of each."""
    from tensorflow.core.framework import kernel_def_pb2, op_def_pb2
    from tensorflow.python.client import pywrap_tf_session

    ops, kernels = op_def_pb2.OpList(), kernel_def_pb2.KernelList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    found = pywrap_tf_session.TF_GetAllRegisteredKernels()
    kernels.ParseFromString(pywrap_tf_session.TF_GetBuffer(found))
    by_op: dict[str, list[Any]] = {}
    for kernel in kernels.kernel:
        if kernel.device_type == "CPU":
            by_op.setdefault(kernel.op, []).append(kernel)
    return {op.name: op for op in ops.op}, by_op


def reason(op: Any, kernels: list[Any]) -> str:
    """The first reason why tests have no such op."""
    types = {arg.type for arg in (*op.input_arg, *op.output_arg)}
    numbers = [k for k in kernels if _on_numbers(op, k)]
    name = op.name
    checks = {
        "control flow, and calls": name in _CONTROL,
        "internal": bool(_INTERNAL.match(name)),
        "written in place": name in _IN_PLACE,
        "no kernel for CPUs": not kernels,
        "variants, handles and references": bool(types & {_RESOURCE, _VARIANT})
        or any(arg.is_ref for arg in op.input_arg),
        "strings": _STRING in types,
        "stateful": op.is_stateful,
        "random": bool(_RANDOM.search(name)),
        "quantized": bool(_QUANTIZED.search(name)),
        "no kernel for the dtypes of tests": not numbers,
        "not exact on integers": name in _INEXACT,
        "several results": len(op.output_arg) > 1 or any(a.number_attr for a in op.output_arg),
        "deprecated": op.deprecation.version > 0,
    }
    return next((why for why, holds in checks.items() if holds), "not covered yet")


def _on_numbers(op: Any, kernel: Any) -> bool:
    """True if a kernel takes numbers, and bools, of the dtypes of tests."""
    limits = {c.name: set(c.allowed_values.list.type) for c in kernel.constraint}
    for arg in (*op.input_arg, *op.output_arg):
        permitted = limits.get(arg.type_attr) if arg.type_attr else {arg.type}
        if permitted and not permitted & _EXACT and permitted != {0}:
            return False
    return True


def text() -> str:
    """The page."""
    import tensorflow

    ops, kernels = registry()
    others = {name for name, op in OPS.items() if name in ops and not (op.pure and op.meaning)}
    left: dict[str, list[str]] = {}
    for name, op in ops.items():
        if name not in OPS and name not in _HELPERS:
            left.setdefault(reason(op, kernels.get(name, [])), []).append(name)
    defined = {name for name in DEFINED_OPS - ABSTRACT_OPS if OPS[name].pure}
    pure = len(defined) + sum(OPS[name].kind is Kind.PURE for name in others)
    have = len(others) + len(defined)
    version = ".".join(tensorflow.__version__.split(".")[:2])
    parts = [
        "# Ops",
        _paragraph(
            f"TensorFlow {version} registers {len(ops):,} ops. Tests have {have} of them: "
            f"{pure} pure ops, and {have - pure} on variables and queues. This page lists them, "
            "and says of every other op why tests have it not. `python -m tests.docs.registry` "
            "writes the page."
        ),
        "## Pure ops",
        _paragraph(
            "Each op below is defined once, by a row of `corpus/pure`: operands and their dtypes, "
            "attributes, and one exact function on integers, which all oracles share. `make test` "
            "compares each with TensorFlow's own kernel on random operands, failures included; "
            "the nightly tests do so on thousands. Operands and attributes have TensorFlow's "
            "names. T stands for any number, F for a float, I for int32 or int64, A for any dtype, "
            "bool included; `x*` may be given several times; `[A]` is a list of tensors."
        ),
        _paragraph(
            "A list (TensorListReserve and its kin) is a value that loops carry on, as AutoGraph "
            "writes them. Its elements have one shape, which is a constant with one dimension at "
            "least. A list is not observed, stored or fetched; TensorListStack makes it a tensor."
        ),
        _paragraph(
            "An op *by lanes* acts on each element alike, and a test with it may have lanes. An "
            "operand *to be known* decides the shape of the result. Where it is no constant, the "
            "shape of the result may differ between orders: then it cannot be stored or observed, "
            "but other pure ops take it. Values of the operands that *may fail* the op end the "
            "order: outcome `failed`."
        ),
        _paragraph(
            "An op with several results stands in a test once for each result that is used. Its "
            "attribute `result` says which: one of the names behind the arrow, or, for a list, "
            "a number from 0."
        ),
        "\n".join(_rows()),
        _paragraph(
            "The other pure ops have arithmetic of their own in each oracle: "
            + _listed(n for n in others if OPS[n].kind is Kind.PURE)
        ),
        _paragraph(
            "XLA has no kernel for some of them, or one that fails or errs, or they have several "
            "results, so the executor `tf` keeps them out of clusters: "
            + _listed(row.name for row in ROWS if not row.compiles)
        ),
        "## Ops on variables and queues",
        _paragraph(_listed(n for n in others if OPS[n].kind is not Kind.PURE)),
        _paragraph(
            "Indices and slices of these may be operands, from what was read: " + _listed(COMPUTED)
        ),
        _paragraph(
            "Those of ResourceScatterDiv always are. On integers its kernel cuts the quotient off "
            "towards 0, and fails where an update is 0. On floats a test has it where it divides."
        ),
        "## Ops that tests do not have",
        _paragraph("Each op is listed with the first reason that holds. Others may hold as well."),
        _paragraph("*Part of what LitmusFuzz itself writes*: " + _listed(_HELPERS & ops.keys())),
    ]
    for why in _ORDER:
        names = left.get(why, [])
        if names:
            parts += [
                f"### {why[0].upper() + why[1:]}: {len(names)}",
                _WHY[why],
                _paragraph(_listed(names)),
            ]
    return "\n\n".join(parts) + "\n"


def _rows() -> Iterable[str]:
    yield "| op | operands | attributes | by lanes | to be known | may fail |"
    yield "|---|---|---|---|---|---|"
    for row in sorted(ROWS, key=lambda each: each.name):
        attrs = ", ".join(f"`{each.name}`" for each in row.fields)
        signature = row.signature
        if row.results:
            results = " ".join(f"{name}:{kind}" for name, kind in row.results)
            signature = f"{signature.partition('->')[0]}-> {results}"
        signature = signature.replace("@", "").replace("=", ": ")
        fails = sorted(row.fails_by)
        yield (
            f"| {row.name} | `{signature}` | {attrs} | {'yes' if row.lanes else ''} | "
            f"{', '.join(row.shape_from)} | {', '.join(fails)} |"
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) + "."


def _paragraph(words: str) -> str:
    return textwrap.fill(words, WIDTH, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")
