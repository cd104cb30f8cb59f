#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/element_type.hpp"
#include "checkpoint/mapped_file.hpp"
#include "gatefold/gatefold.h"

// The safetensors format: 8 bytes of header length (little-endian), a JSON header, and the data, in which the tensors
// lie one after the other without gaps or overlaps.
namespace gatefold::checkpoint {

using Metadata = std::map<std::string, std::string>;

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

// A tensor of one of Gatefold's types in memory. Throws InputError if its size overflows.
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
