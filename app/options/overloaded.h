#pragma once

namespace attnlab {

// Functions for the alternatives of a variant as one: std::visit(Overloaded{...}, variant).
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace attnlab
