#pragma once

// The files of device/ and routines/ as text, embedded at build time. Emitted code contains the
// device headers in this order; complex and random only where needed.
namespace stride::codegen {

extern const char kBaseHeader[];
extern const char kArithmeticHeader[];
extern const char kFloatsHeader[];
extern const char kComplexHeader[];
extern const char kGenericHeader[];
extern const char kRandomHeader[];
// For variances; follows the other headers.
extern const char kMomentsHeader[];
// For reductions on the CPU device; follows the other headers.
extern const char kLanesHeader[];
// The kernel that runs programs by block loops; follows the loops.
extern const char kInterpretHeader[];

// For routines: common first, then a routine's dependencies, then the routine.
extern const char kCommonRoutine[];
extern const char kOrderRoutine[];
extern const char kIndicesRoutine[];
extern const char kAccumulateRoutine[];
extern const char kChunksRoutine[];
extern const char kTilesRoutine[];
extern const char kColumnsRoutine[];
extern const char kGatherRoutine[];
extern const char kScatterRoutine[];
extern const char kCompressRoutine[];
extern const char kCountsRoutine[];
extern const char kMarksRoutine[];
extern const char kMergeRoutine[];
extern const char kSortRoutine[];
extern const char kRankingRoutine[];
extern const char kRadixRoutine[];
extern const char kNumbersRoutine[];
extern const char kKeysRoutine[];
extern const char kItemsRoutine[];
extern const char kVectorsRoutine[];
extern const char kDigitsRoutine[];
extern const char kKeyedRoutine[];
extern const char kFirstsRoutine[];
extern const char kEntriesRoutine[];
extern const char kRunsRoutine[];
extern const char kSegmentsRoutine[];
extern const char kTallyRoutine[];
extern const char kTargetsRoutine[];
extern const char kMembersRoutine[];
extern const char kHistogramRoutine[];
extern const char kGroupRoutine[];
extern const char kGroupingRoutine[];
extern const char kSearchRoutine[];
extern const char kBlocksRoutine[];
extern const char kSeekRoutine[];
extern const char kBinsRoutine[];
extern const char kNarrowRoutine[];
extern const char kTopRoutine[];
extern const char kSelectRoutine[];
extern const char kPartitionRoutine[];
extern const char kInterpolateRoutine[];
extern const char kCorrelateRoutine[];
extern const char kFoldRoutine[];
extern const char kAtRoutine[];
extern const char kSumsRoutine[];
extern const char kGufuncRoutine[];

// Matrix products on a GPU (emit_matmul.cc): of wider integers, of bytes.
extern const char kProductsRoutine[];
extern const char kBytesRoutine[];

}  // namespace stride::codegen
