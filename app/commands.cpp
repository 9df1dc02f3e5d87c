#include "commands.h"

#include "attnlab/experiments/attend.h"
#include "run_configs.h"
#include "schema_command.h"

namespace attnlab {

std::vector<Command> all_commands() {
  return {
      make_command("attend", "scaled dot-product attention on given Q, K, V, every step visible",
                   "  attnlab attend --q Q.npy --k K.npy --v V.npy --causal --show output,weights\n"
                   "  attnlab attend --n 5 --d-k 4 --trace",
                   attend),
      schema_command(),
      run_configs_command(),
  };
}

}  // namespace attnlab
