#include "bench/device/routines.h"

#include "bench/device/routine_rows.h"

namespace stride::bench {

std::vector<NamedRoutine> Routines(bool quick, Libraries& libraries) {
  std::vector<NamedRoutine> rows;
  AddElementRoutines(quick, libraries, &rows);
  AddReductionRoutines(quick, libraries, &rows);
  AddOrderRoutines(quick, libraries, &rows);
  AddScanRoutines(quick, libraries, &rows);
  AddIndexRoutines(quick, libraries, &rows);
  AddMoveRoutines(quick, libraries, &rows);
  AddTransformRoutines(quick, libraries, &rows);
  AddRandomRoutines(quick, libraries, &rows);
  AddLinearRoutines(quick, libraries, &rows);
  return rows;
}

}  // namespace stride::bench
