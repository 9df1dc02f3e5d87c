#pragma once

namespace attnlab {

// From now on the program ends as on any bad input when a file that it has mapped is cut short, or
// its disk fails, before it has been read.
void end_on_lost_input();

}  // namespace attnlab
