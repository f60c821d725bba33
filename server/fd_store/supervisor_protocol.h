#pragma once

// Protocol between a daemon and its supervisor. Each packet is a letter followed by a name or a
// text.
namespace stride::fd_store {

inline constexpr char kStore = 'S';   // with a descriptor; answered by kDone or kRefused
inline constexpr char kRemove = 'R';  // not answered
// with the index of a kept descriptor; answered by kKept or kNone
inline constexpr char kTake = 'T';
inline constexpr char kReady = 'Y';  // not answered
inline constexpr char kAlive = 'A';  // not answered

inline constexpr char kDone = 'D';
inline constexpr char kRefused = 'E';  // with the reason
inline constexpr char kKept = 'K';     // with the name and the descriptor
inline constexpr char kNone = 'N';

}  // namespace stride::fd_store
