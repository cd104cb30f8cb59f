#include "how.hpp"

#include <charconv>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "gatefold/names.h"

namespace gatefold_torch {
namespace {

[[noreturn]] void refuse(std::string_view key, std::string_view value) {
  throw std::runtime_error(std::string(key).append(": unknown value '").append(value).append("'"));
}

template <class Number>
Number number(std::string_view key, std::string_view value) {
  Number parsed{};
  const char* end = value.data() + value.size();
  if (const auto [rest, error] = std::from_chars(value.data(), end, parsed); error != std::errc{} || rest != end) {
    refuse(key, value);
  }
  return parsed;
}

template <class Enum>
Enum named(std::string_view key, std::string_view value, const char* (*name_of)(Enum)) {
  for (int i = 1;; ++i) {
    const std::string_view name = name_of(static_cast<Enum>(i));
    if (name == value) return static_cast<Enum>(i);
    if (name == "?") refuse(key, value);
  }
}

void set(How& how, std::string_view key, std::string_view value) {
  if (key == "layout") {
    how.layout = named(key, value, gatefold_name_of_layout);
  } else if (key == "block") {
    how.block = number<int64_t>(key, value);
  } else if (key == "activation") {
    how.activation = named(key, value, gatefold_name_of_activation);
  } else if (key == "limit") {
    how.limit = number<float>(key, value);
  } else if (key == "alpha") {
    how.alpha = number<float>(key, value);
  } else if (key == "beta") {
    how.beta = number<float>(key, value);
  } else if (key == "batch_invariant") {
    if (value != "1") refuse(key, value);
    how.flags |= GATEFOLD_FLAG_BATCH_INVARIANT;
  } else if (key == "implementation") {
    how.implementation = value;
  } else {
    refuse("how", key);
  }
}

How parsed(const std::string& text) {
  How how;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t equals = rest.find('=');
    if (equals == std::string_view::npos) refuse("how", rest);
    const std::string_view key = rest.substr(0, equals);
    const size_t end = key == "implementation" ? std::string_view::npos : rest.find(';', equals);
    set(how, key, rest.substr(equals + 1, end == std::string_view::npos ? end : end - equals - 1));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return how;
}

}  // namespace

const How& parse_how(const std::string& text) {
  // A model asks for the same in every layer.
  thread_local std::string last;
  thread_local How how;
  if (text != last) {
    How next = parsed(text);
    last = text;
    how = std::move(next);
  }
  return how;
}

}  // namespace gatefold_torch
