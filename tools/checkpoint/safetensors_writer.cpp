#include "checkpoint/safetensors_writer.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "checkpoint/input_error.hpp"

namespace gatefold::checkpoint {
namespace {

using nlohmann::ordered_json;

// The JSON behind its length, padded so that the data begin at a multiple of 8 bytes, as the official package does.
std::string frame(std::string text) {
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>((text.size() >> (8 * i)) & 0xff);
  return length + text;
}

std::string dump(const ordered_json& value, const std::string& file) {
  try {
    return value.dump();
  } catch (const ordered_json::exception&) {  // the only thing that can be wrong with strings and numbers
    throw_input_error(file, ": a name or a metadata text is not UTF-8");
  }
}

}  // namespace

SafetensorsWriter::Header SafetensorsWriter::make_header(const std::string& file, const std::vector<TensorSpec>& specs,
                                                         const Metadata& metadata) {
  // Written member by member: an ordered_json looks through all that it has before it takes another.
  std::string text = "{";
  const auto add = [&](const std::string& name, const ordered_json& value) {
    text += (text.size() == 1 ? "" : ",") + dump(name, file) + ":" + dump(value, file);
  };
  if (!metadata.empty()) add("__metadata__", metadata);
  std::unordered_set<std::string_view> names{"__metadata__"};
  std::uint64_t end = 0;
  for (const TensorSpec& spec : specs) {
    const auto bytes = tensor_bytes(spec.type, spec.shape);
    if (!bytes || *bytes > std::numeric_limits<std::uint64_t>::max() - end) {
      throw_input_error(file, ": tensor ", spec.name, ": shape ", to_string(spec.shape), " of ", spec.type.name,
                        " overflows");
    }
    if (!names.insert(spec.name).second) {
      throw_input_error(file, ": duplicate or reserved name \"", spec.name, '"');
    }
    add(spec.name, {{"dtype", spec.type.name}, {"shape", spec.shape}, {"data_offsets", {end, end + *bytes}}});
    end += *bytes;
  }
  return {frame(text + "}"), end};
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, const std::vector<TensorSpec>& specs,
                                     const Metadata& metadata)
    : SafetensorsWriter(path.string(), AtomicFile(path), specs, metadata) {}

SafetensorsWriter::SafetensorsWriter(const std::string& name, AtomicFile file, const std::vector<TensorSpec>& specs,
                                     const Metadata& metadata)
    : SafetensorsWriter(std::move(file), make_header(name, specs, metadata)) {}

SafetensorsWriter::SafetensorsWriter(AtomicFile file, const Header& header)
    : file_(std::move(file)), data_bytes_(header.data_bytes) {
  file_.write(header.text);
}

void SafetensorsWriter::append(std::span<const std::byte> data) {
  file_.write(data);
  appended_ += data.size();
}

void SafetensorsWriter::require_complete() const {
  if (appended_ != data_bytes_) {
    throw std::logic_error("safetensors writer: " + std::to_string(appended_) + " bytes appended, " +
                           std::to_string(data_bytes_) + " announced");
  }
}

void SafetensorsWriter::commit() {
  require_complete();
  file_.commit();
}

AtomicFile SafetensorsWriter::finish() && {
  require_complete();
  file_.flush();
  return std::move(file_);
}

void write_safetensors(const std::filesystem::path& path, std::vector<Tensor> tensors, const Metadata& metadata) {
  std::ranges::stable_sort(tensors, std::ranges::greater{}, [](const Tensor& t) { return t.type.bits; });
  std::vector<TensorSpec> specs;
  specs.reserve(tensors.size());
  for (const Tensor& tensor : tensors) specs.push_back({tensor.name, tensor.type, tensor.shape});
  SafetensorsWriter writer(path, specs, metadata);
  for (const Tensor& tensor : tensors) writer.append(tensor.range());
  writer.commit();
}

}  // namespace gatefold::checkpoint
