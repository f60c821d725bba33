// Names that the prelude declares and a source may declare itself.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace stride::cpucuda {

// NVRTC declares no uint64_t, M_PI or __half without an include, so sources that include nothing
// declare such names themselves, often with another type. The prelude has them without an include.
// Where the two conflict, the source's name is replaced throughout the source, after the prelude,
// by one of its own: the source then means what it means to NVRTC. NVRTC lets a source define its
// functions too (an atomicAdd of doubles, say): the source's overload is then the first among
// NVRTC's.
class OwnNames {
 public:
  // Adds the names of the prelude that, by the compiler's log, the source declares too. False when
  // there is none that was not there before.
  bool AddFrom(std::string_view log);

  // Text for a file to be included after the prelude.
  std::string Header() const;

  // The same text with the source's names as the source spells them.
  static std::string AsSpelled(std::string text);

 private:
  size_t size() const { return names_.size() + functions_.size() + macros_.size(); }

  std::set<std::string> names_, functions_, macros_;
};

}  // namespace stride::cpucuda
