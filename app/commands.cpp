#include "commands.h"

#include "attnlab/experiments/attend.h"
#include "attnlab/experiments/bench.h"
#include "attnlab/experiments/compare.h"
#include "attnlab/experiments/diagnose.h"
#include "attnlab/experiments/gradcheck.h"
#include "attnlab/experiments/gradients.h"
#include "attnlab/experiments/multihead.h"
#include "attnlab/experiments/roles.h"
#include "attnlab/experiments/saturation.h"
#include "attnlab/experiments/softmax.h"
#include "attnlab/experiments/tensors.h"
#include "attnlab/experiments/variance.h"
#include "attnlab/experiments/weights.h"
#include "merge_command.h"
#include "render/compare_table.h"
#include "render/experiment_tables.h"
#include "render/weights_map.h"
#include "run_configs.h"
#include "save_attention_case.h"
#include "schema_command.h"

namespace attnlab {
namespace {

std::vector<std::string> matrices_asked_for(const AttendOptions& options) {
  if (options.gradients.grad_output.empty()) return {};
  if (options.value.past.k.empty()) return {"grad_q", "grad_k", "grad_v"};
  return {"grad_q", "grad_k", "grad_v", "grad_past_k", "grad_past_v"};
}

// Those there are of them: a layer need not have a memory, nor biases.
std::vector<std::string> matrices_asked_for(const MultiheadOptions& options) {
  std::vector<std::string> names;
  if (options.gradients.grad_output.empty()) return names;
  for (const ResultRef& gradient : columns_of<LayerGradients>()) names.emplace_back(gradient.name);
  return names;
}

std::vector<std::string> matrices_asked_for(const SoftmaxOptions& options) {
  if (options.jacobian) return {"jacobian"};
  return {};
}

// The layer of --save-params.
template <class Options, class Result>
void save_layer(const Options& options, const Result& result) {
  if (result.layer) write_layer(options.layer.save_params.path, *result.layer, "save_params");
}

// compare, diagnose and gradcheck are checks: they fail when the two sides are apart.
int exit_code_of(const CompareResult& result) { return result.equal ? 0 : 1; }
int exit_code_of(const DiagnoseResult& result) { return result.equal ? 0 : 1; }
int exit_code_of(const GradcheckResult& result) { return result.passed ? 0 : 1; }

}  // namespace

std::vector<Command> all_commands() {
  return {
      make_command("attend", "scaled dot-product attention on given Q, K, V",
                   "  attnlab attend --q Q.npy --k K.npy --v V.npy --causal --show output,weights\n"
                   "  attnlab attend --n 5 --d-k 4 --trace\n"
                   "  attnlab attend --q Q.npy --k K.npy --v V.npy --grad-output G.npy\n"
                   "  attnlab attend --q Q.npy --k K.npy --v V.npy --causal --save-case case",
                   attend, {.also_shown = matrices_asked_for, .save = save_attention_case}),
      make_command("multihead", "multi-head attention: the layer with its projections",
                   "  attnlab multihead --x X.npy --params layer.safetensors --heads 4 --causal\n"
                   "  attnlab multihead --x Y.npy --memory X.npy --heads 2 --show weights\n"
                   "  attnlab multihead --x X.npy --params layer.safetensors --grad-output G.npy",
                   multihead, {.also_shown = matrices_asked_for, .save = save_layer}),
      make_command("roles", "encoder, masked decoder and cross attention side by side",
                   "  attnlab roles --n-source 5 --n-target 4 --heads 2\n"
                   "  attnlab roles --source X.npy --target Y.npy --show all",
                   roles, {.walked_by = "multihead --trace"}),
      make_command("weights", "look at weight matrices, given or computed",
                   "  attnlab weights W.npy --tokens \"the animal was tired\"\n"
                   "  attnlab weights --q Q.npy --k K.npy --causal --top 3",
                   weights,
                   {.table = weights_map,
                    .save = save_layer,
                    .walked_by = "attend --trace or multihead --trace"}),
      make_command("softmax", "softmax values, Jacobian and overflow",
                   "  attnlab softmax 1 2 3 --jacobian\n"
                   "  attnlab softmax 100,200,300 --dtype float32 --method stable,naive",
                   softmax, {.also_shown = matrices_asked_for}),
      make_command("gradcheck",
                   "the backward pass against central differences; exit code 1 when they differ",
                   "  attnlab gradcheck --n 4 --m 5 --d-k 3 --heads 2 --causal --softcap 2\n"
                   "  attnlab gradcheck --q Q.npy --k K.npy --v V.npy --dtype float32\n"
                   "  attnlab gradcheck --d-model 8 --heads 4 --kv-heads 2 --bias --role decoder",
                   gradcheck, {.save = save_layer, .exit_code = exit_code_of}),
      make_command("compare",
                   "how two tensors or results differ, or a kernel and a case; exit code 1 when "
                   "they do",
                   "  attnlab compare A.npy B.npy --atol 1e-6\n"
                   "  attnlab compare first.json second.json\n"
                   "  attnlab compare case my_kernel.npz",
                   compare, {.table = compare_table, .exit_code = exit_code_of}),
      make_command("diagnose",
                   "whose semantics an output of attention follows; exit code 1 when not those "
                   "asked for",
                   "  attnlab diagnose --q Q.npy --k K.npy --v V.npy --causal --candidate Z.npy\n"
                   "  attnlab diagnose --config layer.json --candidate Z.npy --format json",
                   diagnose, {.table = diagnose_table, .exit_code = exit_code_of}),
      make_command("tensors", "what a file holds: names, shapes and dtypes of its tensors",
                   "  attnlab tensors model.safetensors\n"
                   "  attnlab tensors arrays.npz --format json",
                   tensors),
      make_command("variance", "the variance of q.k against d_k, with and without scaling",
                   "  attnlab variance\n"
                   "  attnlab variance --d-k 16,64 --distribution laplace --samples 100000",
                   variance, {.table = variance_table}),
      make_command("saturation", "how saturated the softmax is, with and without scaling",
                   "  attnlab saturation --d-k 16,64,256 --keys 8,64,512\n"
                   "  attnlab saturation --logits iid --logit-variance 0.25,1,4\n"
                   "  attnlab saturation --weights W.npy",
                   saturation, {.table = saturation_table}),
      make_command("gradients", "the gradients that reach q, k and v, with and without scaling",
                   "  attnlab gradients\n"
                   "  attnlab gradients --d-k 64,1024 --keys 8,64 --samples 10000",
                   gradients, {.table = gradients_table}),
      make_command("bench",
                   "how long attention takes, its share of the processor's peak, and memory",
                   "  attnlab bench\n"
                   "  attnlab bench --n 512,4096 --d-k 64,128 --causal --threads 1,2\n"
                   "  attnlab bench --n 2048 --weights --buffers fresh,warm\n"
                   "  attnlab bench --operation backward,multihead --n 1024 --output rows.jsonl",
                   bench, {.table = bench_table}),
      merge_command(),
      schema_command(),
      run_configs_command(),
  };
}

}  // namespace attnlab
