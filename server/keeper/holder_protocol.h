#pragma once

// What a daemon and its holder say to each other, one packet each: a letter, then a name or a text.
namespace stride::keeper {

inline constexpr char kStore = 'S';   // with a descriptor; answered by kDone or kRefused
inline constexpr char kRemove = 'R';  // not answered
inline constexpr char kTake = 'T';    // the index of what is kept; answered by kKept or kNone
inline constexpr char kReady = 'Y';   // not answered
inline constexpr char kAlive = 'A';   // not answered

inline constexpr char kDone = 'D';
inline constexpr char kRefused = 'E';  // and why
inline constexpr char kKept = 'K';     // and its name, with the descriptor
inline constexpr char kNone = 'N';

}  // namespace stride::keeper
