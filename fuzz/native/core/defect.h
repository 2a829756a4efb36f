// Defects of the mutants, in the build with LITMUSFUZZ_MUTANTS only; elsewhere the compiler
// drops their code. fuzz/mutants/native.py describes each, and the test that kills it.
#pragma once

#include <cstdint>

namespace litmusfuzz::executor {

enum class Defect : uint8_t {
  kNone,
  // Variables.
  kRelaxedAtomics,
  kStoreBuffers,
  kStaleCache,
  kTornWrite,
  kInPlaceUpdate,
  kAlwaysInitialized,
  kZeroForNoValue,
  // Order.
  kDroppedControlEdge,
  kEarlySink,
  kOneRunWaitedFor,
  // Devices.
  kEarlyTransfer,
  kCopiedVariables,
  // OpenCL (fuzz/native/plugins/opencl).
  kUnawaitedOperand,
  kEventOfWrongQueue,
  kEarlyReuse,
  kUnawaitedUpload,
  kUnawaitedDownload,
  kStaleMap,
  kContraction,
  kBrokenSource,
  kLostDevice,
  // Sections and queues.
  kTwoHolders,
  kEarlyRelease,
  kLastInFirstOut,
  kOverCapacity,
  kLostWakeUp,
  // Accumulators.
  kStaleGradient,
  kGradientTwice,
  kTooFewGradients,
  kKeptSum,
  kOldStep,
  // Loops.
  kOldFrame,
  kEarlyBody,
  kNoWindow,
  // Calls.
  kEarlyReturn,
  kPrunedCall,
  // Handles.
  kMissedAlias,
  // Clusters.
  kSplitSnapshot,
  kSplitWriteBack,
  kAliasedSnapshot,
  kEarlySnapshot,
};

#ifdef LITMUSFUZZ_MUTANTS
inline constexpr bool kMutants = true;
#else
inline constexpr bool kMutants = false;
#endif

}  // namespace litmusfuzz::executor
