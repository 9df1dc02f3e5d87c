#include "attnlab/core/describe.h"

#include <array>

#include "catch.h"

namespace attnlab {
namespace {

enum class Fruit { apple, pear };

struct Inner {
  std::optional<double> softcap;
  Fruit fruit = Fruit::pear;

  static constexpr auto fields();
};

struct Everything {
  bool causal = false;
  Index d_k = 4;
  std::uint64_t seed = 9;
  double share = 0.5;
  std::string name = "x";
  std::vector<double> values;
  std::vector<Fruit> fruits = {Fruit::apple};
  WordOrNumber scale = "auto";
  FilePath params;
  TensorSource q;
  NamedFiles save;
  Inner inner;

  static constexpr auto fields();
};

constexpr std::array<std::string_view, 1> kScaleWords = {"auto"};

}  // namespace

template <>
inline constexpr std::array<std::string_view, 2> kChoiceNames<Fruit> = {"apple", "pear"};

namespace {

constexpr auto Inner::fields() {
  return std::tuple(field("softcap", &Inner::softcap, "cap", {.range = above(0.0)}),
                    field("fruit", &Inner::fruit, "a fruit"));
}

constexpr auto Everything::fields() {
  using E = Everything;
  return std::tuple(
      field("causal", &E::causal, "hide later keys"),
      field("d_k", &E::d_k, "width of a key", {.unit = "width", .range = at_least<Index>(1)}),
      field("seed", &E::seed, "seed"),
      field("share", &E::share, "a share", {.range = between(0.0, 1.0)}),
      field("name", &E::name, "a name", {.echo = false}),
      field("values", &E::values, "numbers", {.positional = true, .non_finite = true}),
      field("fruits", &E::fruits, "fruits"),
      field("scale", &E::scale, "factor", {.words = kScaleWords}),
      field("params", &E::params, "a layer", {.unit = "FILE"}),
      field("q", &E::q, "queries", {.list_text = true}), field("save", &E::save, "files"),
      group("Inside", &E::inner));
}

const OptionRef& option(const std::vector<OptionRef>& options, std::string_view name) {
  for (const OptionRef& ref : options) {
    if (ref.name == name) return ref;
  }
  throw std::logic_error("no option " + std::string(name));
}

TEST_CASE("options are listed in the order of their declaration, groups inside") {
  Everything everything;
  std::vector<std::string> names;
  for (const OptionRef& ref : options_of(everything)) names.emplace_back(ref.name);
  CHECK(names == std::vector<std::string>{"causal", "d_k", "seed", "share", "name", "values",
                                          "fruits", "scale", "params", "q", "save", "softcap",
                                          "fruit"});
}

TEST_CASE("a flag is the name with dashes") {
  Everything everything;
  CHECK(option(options_of(everything), "d_k").flag() == "--d-k");
}

TEST_CASE("an option carries what its declaration says") {
  Everything everything;
  const auto options = options_of(everything);
  const OptionRef& d_k = option(options, "d_k");
  CHECK(d_k.help == "width of a key");
  CHECK(d_k.unit == "width");
  CHECK(d_k.heading.empty());
  CHECK(d_k.echo);
  CHECK_FALSE(d_k.positional);
  CHECK(std::get<Range<Index>>(d_k.range).low == 1);
  CHECK_FALSE(std::get<Range<Index>>(d_k.range).high);
  CHECK(std::holds_alternative<Range<std::uint64_t>>(option(options, "seed").range));
  const auto share = std::get<Range<double>>(option(options, "share").range);
  CHECK(share.low == 0.0);
  CHECK(share.high == 1.0);
  CHECK_FALSE(share.low_open);
  CHECK_FALSE(option(options, "name").echo);
  CHECK(option(options, "values").positional);
  CHECK(option(options, "values").non_finite);
  CHECK_FALSE(option(options, "share").non_finite);
  CHECK(option(options, "q").list_text);
  CHECK(option(options, "scale").words.size() == 1);
  CHECK(option(options, "scale").words[0] == "auto");
  CHECK(option(options, "softcap").heading == "Inside");
  CHECK(std::get<Range<double>>(option(options, "softcap").range).low == 0.0);
  CHECK(std::get<Range<double>>(option(options, "softcap").range).low_open);
}

TEST_CASE("a reference reads and writes the struct's member") {
  Everything everything;
  const auto options = options_of(everything);
  *std::get<Index*>(option(options, "d_k").value) = 64;
  CHECK(everything.d_k == 64);
  *std::get<std::optional<double>*>(option(options, "softcap").value) = 30;
  CHECK(everything.inner.softcap == 30.0);
  CHECK(std::get<WordOrNumber*>(option(options, "scale").value)->word == "auto");
  CHECK(std::get<bool*>(option(options, "causal").value) == &everything.causal);
  CHECK(std::get<FilePath*>(option(options, "params").value) == &everything.params);
  CHECK(std::get<TensorSource*>(option(options, "q").value) == &everything.q);
  CHECK(std::get<NamedFiles*>(option(options, "save").value) == &everything.save);
}

TEST_CASE("choices are read and written by the index of their name") {
  Everything everything;
  const auto options = options_of(everything);
  const auto fruit = std::get<ChoiceRef>(option(options, "fruit").value);
  CHECK(fruit.names[1] == "pear");
  CHECK(fruit.get(fruit.object) == 1);
  fruit.set(fruit.object, 0);
  CHECK(everything.inner.fruit == Fruit::apple);
  const auto fruits = std::get<ChoiceListRef>(option(options, "fruits").value);
  CHECK(fruits.names.size() == 2);
  CHECK(fruits.get(fruits.object) == std::vector<int>{0});
  fruits.set(fruits.object, {1, 0, 1});
  CHECK(everything.fruits == std::vector<Fruit>{Fruit::pear, Fruit::apple, Fruit::pear});
}

struct Cell {
  Index d_k = 0;
  std::optional<double> ratio;

  static constexpr auto fields() {
    return std::tuple(field("d_k", &Cell::d_k, "width"),
                      field("ratio", &Cell::ratio, "measured over theory"));
  }
};

struct Outcome {
  std::optional<AnyTensor> weights, output;
  double total = 2;
  std::vector<Cell> rows;
  Cell fit;
  std::vector<std::string> notes;  // not described

  static constexpr auto fields() {
    using O = Outcome;
    return std::tuple(field("weights", &O::weights, "weights",
                            {.formula = "softmax(scores)", .shape = "[n, m]", .shown = true}),
                      field("output", &O::output, "output"), field("total", &O::total, "sum"),
                      field("rows", &O::rows, "one a point"), group("Fit", &O::fit));
  }
};

TEST_CASE("a result lists matrices, numbers and groups") {
  Outcome outcome;
  outcome.weights = Tensor<double>({1, 2}, {0.25, 0.75});
  const auto results = result_of(outcome);
  REQUIRE(results.size() == 6);
  CHECK(results[0].name == "weights");
  CHECK(results[0].is_matrix());
  CHECK(results[0].formula == "softmax(scores)");
  CHECK(results[0].shape == "[n, m]");
  CHECK(results[0].shown);
  REQUIRE(results[0].matrix() != nullptr);
  CHECK(results[0].matrix()->at(1) == 0.75);
  CHECK(results[1].is_matrix());
  CHECK(results[1].matrix() == nullptr);
  CHECK_FALSE(results[1].shown);
  CHECK_FALSE(results[2].is_matrix());
  CHECK(results[2].matrix() == nullptr);
  CHECK(*std::get<const double*>(results[2].value) == 2);
  CHECK(results[4].name == "d_k");
}

struct Wrapper {
  Outcome inner;

  static constexpr auto fields() { return std::tuple(group("", &Wrapper::inner, "output")); }
};

TEST_CASE("a group can show by default what its struct does not") {
  const auto columns = columns_of<Wrapper>();
  CHECK(columns[1].name == "output");
  CHECK(columns[1].shown);
  CHECK(columns[0].shown);
  CHECK_FALSE(columns[2].shown);
}

TEST_CASE("a list of rows gives its columns, and its cells row by row") {
  Outcome outcome;
  outcome.rows = {{4, 1.5}, {16, std::nullopt}};
  const auto rows = std::get<RowsRef>(result_of(outcome)[3].value);
  CHECK(rows.count == 2);
  REQUIRE(rows.columns.size() == 2);
  CHECK(rows.columns[1].name == "ratio");
  CHECK(*std::get<const Index*>(rows.row(1)[0].value) == 16);
  CHECK(*std::get<const std::optional<double>*>(rows.row(0)[1].value) == 1.5);
  CHECK_FALSE(*std::get<const std::optional<double>*>(rows.row(1)[1].value));
}

struct Fit {
  double slope = 1.5;
  static constexpr auto fields() { return std::tuple(field("slope", &Fit::slope, "")); }
};

struct Study {
  std::optional<Fit> fit;
  std::optional<std::vector<Fit>> parts;
  static constexpr auto fields() {
    return std::tuple(field("fit", &Study::fit, ""), field("parts", &Study::parts, ""));
  }
};

TEST_CASE("an option's value is told in words") {
  Everything everything;
  everything.values = {1, -0.5};
  everything.fruits = {Fruit::pear, Fruit::apple};
  everything.params.path = "layer.safetensors";
  everything.q.values = Tensor<double>({2, 3});
  everything.save = {{"output", "Z.npy"}};
  const auto options = options_of(everything);
  const auto value = [&](std::string_view name) {
    for (const OptionRef& option : options) {
      if (option.name == name) return value_of(option);
    }
    return std::string("no such option");
  };
  CHECK(value("causal") == "false");
  CHECK(value("d_k") == "4");
  CHECK(value("share") == "0.5");
  CHECK(value("name") == "x");
  CHECK(value("values") == "1,-0.5");
  CHECK(value("fruits") == "pear,apple");
  CHECK(value("scale") == "auto");
  CHECK(value("params") == "layer.safetensors");
  CHECK(value("q") == "[2, 3]");
  CHECK(value("save") == "output=Z.npy");
  CHECK(value("softcap") == "");
  CHECK(value("fruit") == "pear");
}

TEST_CASE("an optional object or list that is not there is absent, else it is read like rows") {
  Study study;
  for (const ResultRef& nothing : result_of(study)) {
    CHECK(nothing.absent());
    CHECK(std::get<RowsRef>(nothing.value).count == 0);
  }
  study.fit = Fit{};
  study.parts = {Fit{2}, Fit{3}};
  const auto results = result_of(study);
  const auto& fit = std::get<RowsRef>(results[0].value);
  CHECK_FALSE(results[0].absent());
  CHECK(fit.is_object);
  CHECK(*std::get<const double*>(fit.row(0)[0].value) == 1.5);
  const auto& parts = std::get<RowsRef>(results[1].value);
  CHECK_FALSE(parts.is_object);
  REQUIRE(parts.count == 2);
  CHECK(*std::get<const double*>(parts.row(1)[0].value) == 3);
  study.parts->clear();
  CHECK_FALSE(result_of(study)[1].absent());
}

TEST_CASE("a result's columns are known without a result") {
  const auto columns = columns_of<Outcome>();
  REQUIRE(columns.size() == 6);
  CHECK(columns[0].name == "weights");
  CHECK(columns[0].matrix() == nullptr);
  CHECK(std::get<const double*>(columns[2].value) == nullptr);
  CHECK(std::get<RowsRef>(columns[3].value).columns[0].name == "d_k");
  CHECK(std::get<const Index*>(columns[4].value) == nullptr);
}

}  // namespace
}  // namespace attnlab
