#include "commands.h"

#include "attnlab/experiments/attend.h"
#include "attnlab/experiments/compare.h"
#include "attnlab/experiments/multihead.h"
#include "attnlab/experiments/roles.h"
#include "attnlab/experiments/softmax.h"
#include "attnlab/experiments/weights.h"
#include "render/weights_map.h"
#include "run_configs.h"
#include "schema_command.h"

namespace attnlab {
namespace {

std::vector<std::string> matrices_asked_for(const SoftmaxOptions& options) {
  if (options.jacobian) return {"jacobian"};
  return {};
}

void save_multihead(const MultiheadOptions& options, const MultiheadResult& result) {
  if (result.layer) write_layer(options.layer.save_params.path, *result.layer, "save_params");
}
void save_weights(const WeightsOptions& options, const WeightsResult& result) {
  if (result.layer) write_layer(options.layer.save_params.path, *result.layer, "save_params");
}

// compare is a check: it fails when the two are apart.
int exit_code_of(const CompareResult& result) { return result.equal ? 0 : 1; }

}  // namespace

std::vector<Command> all_commands() {
  return {
      make_command("attend", "scaled dot-product attention on given Q, K, V",
                   "  attnlab attend --q Q.npy --k K.npy --v V.npy --causal --show output,weights\n"
                   "  attnlab attend --n 5 --d-k 4 --trace",
                   attend),
      make_command("multihead", "multi-head attention: the layer with its projections",
                   "  attnlab multihead --x X.npy --params layer.safetensors --heads 4 --causal\n"
                   "  attnlab multihead --x Y.npy --memory X.npy --heads 2 --show weights",
                   multihead, {.save = save_multihead}),
      make_command("roles", "encoder, masked decoder and cross attention side by side",
                   "  attnlab roles --n-source 5 --n-target 4 --heads 2\n"
                   "  attnlab roles --source X.npy --target Y.npy --show all",
                   roles, {.walked_by = "multihead --trace"}),
      make_command("weights", "look at weight matrices, given or computed",
                   "  attnlab weights W.npy --tokens \"the animal was tired\"\n"
                   "  attnlab weights --q Q.npy --k K.npy --causal --top 3",
                   weights,
                   {.table = weights_map,
                    .save = save_weights,
                    .walked_by = "attend --trace or multihead --trace"}),
      make_command("softmax", "softmax values, Jacobian and overflow",
                   "  attnlab softmax 1 2 3 --jacobian\n"
                   "  attnlab softmax 100,200,300 --dtype float32 --method stable,naive",
                   softmax, {.also_shown = matrices_asked_for}),
      make_command("compare", "how two tensors or results differ; exit code 1 when they do",
                   "  attnlab compare A.npy B.npy --atol 1e-6\n"
                   "  attnlab compare first.json second.json",
                   compare, {.exit_code = exit_code_of}),
      schema_command(),
      run_configs_command(),
  };
}

}  // namespace attnlab
