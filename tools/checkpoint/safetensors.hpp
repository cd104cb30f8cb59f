#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/mapped_file.hpp"
#include "gatefold/gatefold.h"

// The safetensors format: 8 bytes of header length (little-endian), a JSON header, and the data, in which the tensors
// lie one after the other without gaps or overlaps.
namespace gatefold::checkpoint {

// A kind of element, as the header names it ("BF16").
struct ElementType {
  std::string_view name;
  std::int64_t bits;

  // Elements of less than a byte need no alignment.
  std::size_t alignment() const { return bits < 8 ? 1 : static_cast<std::size_t>(bits / 8); }
  friend bool operator==(const ElementType& a, const ElementType& b) { return a.name == b.name; }
};

std::optional<ElementType> find_element_type(std::string_view name);
ElementType element_type(gatefold_dtype dtype);
std::optional<gatefold_dtype> gatefold_dtype_of(const ElementType& type);  // BF16, F16, F32

using Shape = std::vector<std::int64_t>;
using Metadata = std::map<std::string, std::string>;

std::string to_string(const Shape& shape);  // "[4096, 14336]"

// A view of a tensor inside a file, or of one to be written.
struct Tensor {
  std::string name;
  ElementType type;
  Shape shape;
  const std::byte* data = nullptr;
  std::size_t bytes = 0;

  std::span<const std::byte> range() const { return {data, bytes}; }

  // Old writers put the data at any byte; the C interface needs element alignment.
  bool aligned() const { return reinterpret_cast<std::uintptr_t>(data) % type.alignment() == 0; }
};

// A tensor of one of Gatefold's types in memory. `data` has shape's product of elements.
Tensor make_tensor(std::string name, gatefold_dtype dtype, Shape shape, const void* data);

struct SafetensorsContents {
  std::vector<Tensor> tensors;  // in file order; their data point into the range parsed
  Metadata metadata;
};

// Checks a whole file in memory: header length, JSON, names, types, and that the tensors' ranges match their shapes and
// cover the data exactly. Touches nothing behind the header. `file` names it in errors. Throws InputError.
SafetensorsContents parse_safetensors(std::span<const std::byte> bytes, const std::string& file);

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);  // throws InputError

  const std::filesystem::path& path() const { return path_; }
  const std::vector<Tensor>& tensors() const { return contents_.tensors; }
  const Metadata& metadata() const { return contents_.metadata; }

  const Tensor* find(std::string_view name) const;  // null if there is none
  const Tensor& at(std::string_view name) const;    // throws InputError, with the names that there are
  void release(const Tensor& tensor) const { file_.release(tensor.range()); }
  void will_need(const Tensor& tensor) const { file_.will_need(tensor.range()); }

 private:
  std::filesystem::path path_;
  MappedFile file_;
  SafetensorsContents contents_;
};

// A tensor's data at an address aligned to its elements: in place where it is so already, else in a copy.
class AlignedData {
 public:
  explicit AlignedData(const Tensor& tensor);

  const std::byte* data() const { return copy_.empty() ? in_place_ : copy_.data(); }
  bool copied() const { return !copy_.empty(); }

 private:
  const std::byte* in_place_;
  std::vector<std::byte> copy_;
};

}  // namespace gatefold::checkpoint
