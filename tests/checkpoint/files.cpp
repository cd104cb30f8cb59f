#include "checkpoint/files.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "checkpoint/input_error.hpp"
#include "checkpoint/safetensors_writer.hpp"

namespace gatefold::checkpoint::test {

TemporaryFolder::TemporaryFolder() {
  std::string name = std::filesystem::temp_directory_path() / "gatefold-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::vector<std::string> TemporaryFolder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

std::string file_bytes(const std::string& header, std::size_t data_bytes) {
  return file_bytes(header, data_bytes, header.size());
}

std::string file_bytes(const std::string& header, std::size_t data_bytes, std::uint64_t stated_length) {
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>((stated_length >> (8 * i)) & 0xff);
  return length + header + std::string(data_bytes, '\0');
}

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_input_error(const std::function<void()>& action, const std::vector<std::string>& parts) {
  try {
    action();
  } catch (const InputError& error) {
    const std::string line = error.what();
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    for (const std::string& part : parts) EXPECT_NE(line.find(part), std::string::npos) << part << "\n  in: " << line;
    return;
  }
  ADD_FAILURE() << "no InputError; expected one with " << (parts.empty() ? "" : parts.front());
}

OwnedTensor::OwnedTensor(std::string tensor_name, gatefold_dtype tensor_dtype, Shape tensor_shape, unsigned first)
    : name(std::move(tensor_name)), dtype(tensor_dtype), shape(std::move(tensor_shape)) {
  const Tensor tensor = make_tensor(name, dtype, shape, nullptr);
  const std::size_t size = tensor.type.alignment();
  memory.resize(tensor.bytes);
  for (std::size_t i = 0; i < memory.size() / size; ++i) {
    const auto value = static_cast<std::uint32_t>(first + i);
    std::memcpy(memory.data() + i * size, &value, size);
  }
}

Tensor OwnedTensor::view() const { return make_tensor(name, dtype, shape, memory.data()); }

void write_tensors(const std::filesystem::path& path, const std::vector<OwnedTensor>& tensors) {
  std::vector<Tensor> views;
  for (const OwnedTensor& tensor : tensors) views.push_back(tensor.view());
  write_safetensors(path, views);
}

}  // namespace gatefold::checkpoint::test
