#include "attnlab/experiments/find_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "attnlab/core/error.h"

namespace attnlab {
namespace {

bool holds(const TensorArchive& file, const LayerLayout& layout, std::string_view prefix) {
  const auto pieces = layout.weights();
  return std::all_of(pieces.begin(), pieces.end(), [&](const LayerPiece* piece) {
    return file.has(fmt::format("{}{}", prefix, piece->name));
  });
}

// "11" out of "transformer.h.11."; empty where no part is a number.
std::string_view last_number(std::string_view prefix) {
  while (!prefix.empty()) {
    const std::size_t end = prefix.find_last_not_of('.');
    if (end == std::string_view::npos) return {};
    prefix = prefix.substr(0, end + 1);
    const std::string_view part = prefix.substr(prefix.find_last_of('.') + 1);
    if (part.find_first_not_of("0123456789") == std::string_view::npos) return part;
    prefix.remove_suffix(part.size());
  }
  return {};
}

bool is_chosen(std::string_view prefix, const LayerChoice& choice) {
  if (choice.number && last_number(prefix) != std::to_string(*choice.number)) return false;
  if (!prefix.starts_with(choice.prefix)) return false;
  // Layer 1 is no beginning of layer 11.
  return choice.prefix.empty() || choice.prefix.ends_with('.') ||
         prefix[choice.prefix.size()] == '.';
}

// Every layer of that layout, in the order of the file.
std::vector<FoundLayer> layers_of(const TensorArchive& file, const LayerLayout& layout) {
  std::vector<FoundLayer> layers;
  for (const std::string& name : file.names()) {
    if (!name.ends_with(layout.w_q.name)) continue;
    std::string prefix = name.substr(0, name.size() - layout.w_q.name.size());
    const bool whole = prefix.empty() || prefix.ends_with('.');
    if (whole && holds(file, layout, prefix)) layers.push_back({&layout, std::move(prefix)});
  }
  return layers;
}

std::string prefixes_of(const std::vector<FoundLayer>& layers) {
  std::vector<std::string> names;
  names.reserve(layers.size());
  for (const FoundLayer& layer : layers) {
    names.push_back(
        fmt::format("{} ({})", layer.prefix.empty() ? "\"\"" : layer.prefix, layer.layout->name()));
  }
  return listed_names(names);
}

[[noreturn]] void refuse_all(const TensorArchive& file, const LayerChoice& choice,
                             const std::vector<FoundLayer>& others) {
  if (!others.empty()) {
    const std::string wanted =
        choice.number ? fmt::format("{}", *choice.number) : std::string(choice.prefix);
    throw InputError(file.path(), choice.number ? "layer" : "prefix", wanted,
                     "need one of its layers: " + prefixes_of(others));
  }
  std::string wanted;
  for (const LayerLayout& layout : layer_layouts()) {
    if (choice.layout != ParamsLayout::automatic && choice.layout != layout.kind) continue;
    wanted += fmt::format("{0}{1}{2} {1}{3}", wanted.empty() ? "" : ", or ", choice.prefix,
                          layout.w_q.name, layout.w_o.name);
  }
  const bool any = choice.layout == ParamsLayout::automatic;
  throw InputError(
      file.path(), "params", listed_names(file.names()),
      fmt::format(
          "need a layer of {} layout: {} ...",
          any ? "a known" : kChoiceNames<ParamsLayout>[static_cast<std::size_t>(choice.layout)],
          wanted));
}

void check_refused(const TensorArchive& file, const FoundLayer& layer) {
  for (const std::string_view refused : layer.layout->refused) {
    const std::string name = layer.prefix + std::string(refused);
    if (!refused.empty() && file.has(name)) {
      throw InputError(file.path(), "params", name,
                       "a layer with this is more than is computed here");
    }
  }
}

}  // namespace

FoundLayer find_layer(const TensorArchive& file, const LayerChoice& choice) {
  std::vector<FoundLayer> chosen, others;
  for (const LayerLayout& layout : layer_layouts()) {
    if (choice.layout != ParamsLayout::automatic && choice.layout != layout.kind) continue;
    if (!choice.number && holds(file, layout, choice.prefix)) {
      chosen = {{&layout, std::string(choice.prefix)}};
      break;
    }
    for (FoundLayer& layer : layers_of(file, layout)) {
      (is_chosen(layer.prefix, choice) ? chosen : others).push_back(std::move(layer));
    }
  }
  if (chosen.empty()) refuse_all(file, choice, others);
  if (chosen.size() > 1) {
    throw InputError(file.path(), "params", fmt::format("{} layers", chosen.size()),
                     "say which one by layer or prefix: " + prefixes_of(chosen));
  }
  check_refused(file, chosen[0]);
  return std::move(chosen[0]);
}

}  // namespace attnlab
