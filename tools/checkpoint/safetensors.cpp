#include "checkpoint/safetensors.hpp"

#include <algorithm>
#include <limits>
#include <ostream>
#include <tuple>
#include <utility>

#include "checkpoint/input_error.hpp"
#include "checkpoint/json_text.hpp"

namespace gatefold::checkpoint {
namespace {

using nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t largest_header = 100'000'000;  // as in the official package

// A tensor's name in errors: "model.safetensors: tensor a.b". Put together only where there is one: a header may have
// half a million.
struct Label {
  const std::string& file;
  const std::string& tensor;

  friend std::ostream& operator<<(std::ostream& out, const Label& label) {
    return out << label.file << ": tensor " << label.tensor;
  }
};

std::uint64_t read_header_length(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.size() < length_bytes) {
    throw_input_error(file, ": ", bytes.size(), " bytes, too short for the ", length_bytes, " bytes of header length");
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  if (length > largest_header) {
    throw_input_error(file, ": header of ", length, " bytes, more than the ", largest_header, " that are allowed");
  }
  if (length > bytes.size() - length_bytes) {
    throw_input_error(file, ": header of ", length, " bytes, but only ", bytes.size() - length_bytes,
                      " bytes follow its length");
  }
  return length;
}

const json& member(const json& entry, const char* key, const Label& where) {
  const auto found = entry.find(key);
  if (found == entry.end()) throw_input_error(where, ": no ", key);
  return *found;
}

std::uint64_t whole_number(const json& value, const char* key, const Label& where) {
  if (!value.is_number_unsigned()) {
    throw_input_error(where, ": ", key, " holds ", value.dump(-1, ' ', true), ", not a whole number");
  }
  return value.get<std::uint64_t>();
}

ElementType parse_type(const json& entry, const Label& where) {
  const json& value = member(entry, "dtype", where);
  const auto type = value.is_string() ? find_element_type(value.get_ref<const std::string&>()) : std::nullopt;
  if (!type) throw_input_error(where, ": unknown dtype ", value.dump(-1, ' ', true));
  return *type;
}

Shape parse_shape(const json& entry, const Label& where) {
  const json& value = member(entry, "shape", where);
  if (!value.is_array()) throw_input_error(where, ": shape is no list");
  Shape shape;
  for (const json& size : value) {
    const std::uint64_t number = whole_number(size, "shape", where);
    if (number > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      throw_input_error(where, ": shape holds ", number, ", more than a 64-bit signed number can");
    }
    shape.push_back(static_cast<std::int64_t>(number));
  }
  return shape;
}

struct Range {
  std::uint64_t begin;
  std::uint64_t end;
};

Range parse_range(const json& entry, std::size_t data_size, const Label& where) {
  const json& value = member(entry, "data_offsets", where);
  if (!value.is_array() || value.size() != 2) throw_input_error(where, ": data_offsets is no list of two numbers");
  const Range range{whole_number(value[0], "data_offsets", where), whole_number(value[1], "data_offsets", where)};
  if (range.begin > range.end) {
    throw_input_error(where, ": data begin at byte ", range.begin, ", behind their end at byte ", range.end);
  }
  if (range.end > data_size) {
    throw_input_error(where, ": data end at byte ", range.end, ", but the file holds ", data_size, " bytes of data");
  }
  return range;
}

Tensor parse_tensor(const std::string& name, const json& entry, std::span<const std::byte> data,
                    const std::string& file) {
  const Label where{file, name};
  if (!entry.is_object()) throw_input_error(where, ": expected a JSON object, found ", entry.type_name());
  Tensor tensor{.name = name, .type = parse_type(entry, where), .shape = parse_shape(entry, where)};
  const Range range = parse_range(entry, data.size(), where);
  const auto bytes = tensor_bytes(tensor.type, tensor.shape);
  if (!bytes) {
    throw_input_error(where, ": shape ", to_string(tensor.shape), " of ", tensor.type.name,
                      tensor.type.bits < 8 ? " overflows or does not end at a byte" : " overflows");
  }
  if (range.end - range.begin != *bytes) {
    throw_input_error(where, ": shape ", to_string(tensor.shape), " of ", tensor.type.name, " takes ", *bytes,
                      " bytes, but data_offsets span ", range.end - range.begin);
  }
  tensor.data = data.data() + range.begin;
  tensor.bytes = static_cast<std::size_t>(*bytes);
  return tensor;
}

Metadata parse_metadata(const json& entry, const std::string& file) {
  if (entry.is_null()) return {};
  if (!entry.is_object()) throw_input_error(file, ": __metadata__ is ", entry.type_name(), ", not an object");
  Metadata metadata;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) {
      throw_input_error(file, ": __metadata__ of ", key, " is ", value.type_name(), ", not a string");
    }
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

// In file order. The format has no room for bytes that belong to no tensor, or to two.
void check_coverage(const std::vector<Tensor>& tensors, std::span<const std::byte> data, const std::string& file) {
  const std::byte* end = data.data();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (tensor.data < end) {
      throw_input_error(Label{file, tensor.name}, ": data begin at byte ", tensor.data - data.data(),
                        ", inside those of tensor ", tensors[i - 1].name, ", which end at byte ", end - data.data());
    }
    if (tensor.data > end) {
      throw_input_error(Label{file, tensor.name}, ": data begin at byte ", tensor.data - data.data(),
                        ", but the tensors before it end at byte ", end - data.data());
    }
    end = tensor.data + tensor.bytes;
  }
  const auto covered = static_cast<std::size_t>(end - data.data());
  if (covered != data.size()) {
    throw_input_error(file, ": the tensors end at byte ", covered, ", but the file holds ", data.size(),
                      " bytes of data");
  }
}

}  // namespace

SafetensorsContents parse_safetensors(std::span<const std::byte> bytes, const std::string& file) {
  const std::uint64_t header_length = read_header_length(bytes, file);
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + length_bytes, header_length);
  if (!header.starts_with('{')) throw_input_error(file, ": the header does not begin with {");
  const std::span<const std::byte> data = bytes.subspan(length_bytes + header_length);

  SafetensorsContents contents;
  parse_json_members(header, file + ": header", [&](const std::string& name, const json& entry) {
    if (name == "__metadata__") {
      contents.metadata = parse_metadata(entry, file);
    } else {
      contents.tensors.push_back(parse_tensor(name, entry, data, file));
    }
  });
  std::ranges::sort(contents.tensors, {}, [](const Tensor& t) { return std::tuple(t.data, t.bytes); });
  check_coverage(contents.tensors, data, file);
  return contents;
}

Tensor make_tensor(std::string name, gatefold_dtype dtype, Shape shape, const void* data) {
  const ElementType type = element_type(dtype);
  const auto bytes = tensor_bytes(type, shape);
  if (!bytes) throw_input_error("tensor ", name, ": shape ", to_string(shape), " of ", type.name, " overflows");
  return {std::move(name), type, std::move(shape), static_cast<const std::byte*>(data),
          static_cast<std::size_t>(*bytes)};
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path), file_(path), contents_(parse_safetensors(file_.bytes(), path.string())) {}

const Tensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::ranges::find(contents_.tensors, name, &Tensor::name);
  return found == contents_.tensors.end() ? nullptr : &*found;
}

const Tensor& SafetensorsFile::at(std::string_view name) const {
  const Tensor* tensor = find(name);
  if (tensor != nullptr) return *tensor;
  std::string names;
  for (const Tensor& other : contents_.tensors) names += (names.empty() ? "" : ", ") + other.name;
  throw_input_error(path_.string(), ": no tensor ", name, "; it holds ", names.empty() ? "none" : names);
}

AlignedData::AlignedData(const Tensor& tensor) : in_place_(tensor.data) {
  if (!tensor.aligned()) copy_.assign(tensor.data, tensor.data + tensor.bytes);
}

}  // namespace gatefold::checkpoint
