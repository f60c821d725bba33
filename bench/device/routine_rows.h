#pragma once

#include <vector>

#include "bench/device/libraries.h"
#include "bench/device/routine.h"

namespace stride::bench {

// Each appends the rows of one kind, as Routines has them.
void AddElementRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows);
void AddReductionRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows);
// Sorts, selections by rank and searches.
void AddOrderRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows);
// Running sums, masks and nonzero.
void AddScanRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows);
// Reads and writes at indices, and sums by index.
void AddIndexRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows);
// Copies to other places, and transposes.
void AddMoveRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows);
void AddTransformRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows);
void AddRandomRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows);
// Vectors by matrices, batches of products, and linear systems.
void AddLinearRoutines(bool quick, Libraries& libraries, std::vector<NamedRoutine>* rows);

}  // namespace stride::bench
