#include "checkpoint/safetensors.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "checkpoint/files.hpp"
#include "checkpoint/safetensors_writer.hpp"

namespace gatefold::checkpoint::test {
namespace {

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return '"' + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + '}';
}

SafetensorsContents parse(const std::string& bytes) {
  return parse_safetensors(std::as_bytes(std::span(bytes)), "f.safetensors");
}

void expect_refused(const std::string& bytes, std::vector<std::string> parts) {
  parts.emplace_back("f.safetensors");
  expect_input_error([&bytes] { parse(bytes); }, parts);
}

TEST(Safetensors, ReadsTensorsInFileOrderAndMetadata) {
  const std::string bytes = file_bytes(R"({"__metadata__":{"format":"pt"},)" + entry("b", "BF16", "[2,3]", "[4,16]") +
                                           "," + entry("a", "F32", "[]", "[0,4]") + "}   ",
                                       16);
  const SafetensorsContents contents = parse(bytes);
  ASSERT_EQ(contents.tensors.size(), 2U);
  EXPECT_EQ(contents.tensors[0].name, "a");
  EXPECT_EQ(contents.tensors[0].shape, Shape{});
  EXPECT_EQ(contents.tensors[1].name, "b");
  EXPECT_EQ(contents.tensors[1].shape, (Shape{2, 3}));
  EXPECT_EQ(contents.tensors[1].type.name, "BF16");
  EXPECT_EQ(contents.tensors[1].bytes, 12U);
  EXPECT_EQ(contents.tensors[1].data, reinterpret_cast<const std::byte*>(bytes.data() + bytes.size() - 12));
  EXPECT_EQ(contents.metadata, (Metadata{{"format", "pt"}}));
}

TEST(Safetensors, AcceptsEmptyFilesAndEmptyTensors) {
  EXPECT_TRUE(parse(file_bytes("{}", 0)).tensors.empty());
  const auto contents =
      parse(file_bytes("{" + entry("e", "F32", "[0,7]", "[0,0]") + "," + entry("x", "U8", "[2]", "[0,2]") + "}", 2));
  EXPECT_EQ(contents.tensors.size(), 2U);
}

TEST(Safetensors, KnowsEveryTypeOfTheFormat) {
  const std::vector<std::pair<std::string, int>> types{
      {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6},     {"F6_E3M2", 6},     {"U8", 8},   {"I8", 8},
      {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8},     {"F8_E4M3FNUZ", 8}, {"I16", 16}, {"U16", 16},
      {"F16", 16},    {"BF16", 16},   {"F8_E5M2FNUZ", 8}, {"I32", 32},        {"U32", 32}, {"F32", 32},
      {"C64", 64},    {"F64", 64},    {"I64", 64},        {"U64", 64}};
  for (const auto& [name, bits] : types) {
    const std::string size = std::to_string(bits);  // eight elements take as many bytes
    const auto contents =
        parse(file_bytes("{" + entry("x", name, "[8]", "[0," + size + "]") + "}", static_cast<std::size_t>(bits)));
    EXPECT_EQ(contents.tensors.at(0).type.bits, bits) << name;
  }
}

TEST(Safetensors, RefusesTruncatedFiles) {
  expect_refused("", {"0 bytes", "8 bytes"});
  expect_refused("\x02", {"1 bytes", "8 bytes"});
  expect_refused(file_bytes("{}", 0, 3), {"header of 3 bytes", "only 2"});
  const std::string whole = file_bytes("{" + entry("x", "F32", "[2]", "[0,8]") + "}", 8);
  EXPECT_NO_THROW(parse(whole));
  expect_refused(whole.substr(0, whole.size() - 1), {"tensor x", "byte 8", "7 bytes of data"});
}

TEST(Safetensors, EveryPrefixOfAFileIsRefused) {
  const std::string whole =
      file_bytes("{" + entry("x", "F32", "[2]", "[0,8]") + "," + entry("y", "F16", "[1]", "[8,10]") + "}", 10);
  for (std::size_t size = 0; size < whole.size(); ++size) expect_refused(whole.substr(0, size), {});
}

TEST(Safetensors, RefusesHeadersThatAreTooLong) {
  expect_refused(file_bytes("{}", 0, 100'000'001), {"100000001", "100000000"});
  expect_refused(file_bytes("{}", 0, ~std::uint64_t{0}), {"18446744073709551615", "100000000"});
}

TEST(Safetensors, RefusesBadJson) {
  expect_refused(file_bytes("", 0), {"begin with {"});
  expect_refused(file_bytes(" {}", 0), {"begin with {"});
  expect_refused(file_bytes("[]", 0), {"begin with {"});
  expect_refused(file_bytes("{\"a\":", 0), {"not valid JSON"});
  expect_refused(file_bytes("{} x", 0), {"not valid JSON"});
  expect_refused(file_bytes("{\"\xff\":1}", 0), {"not valid JSON"});
  expect_refused(file_bytes("{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}", 0), {"nested deeper"});
}

TEST(Safetensors, RefusesDuplicateNames) {
  const std::string x = entry("x", "U8", "[1]", "[0,1]");
  expect_refused(file_bytes("{" + x + "," + x + "}", 1), {"duplicate name \"x\""});
  expect_refused(file_bytes(R"({"x":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1),
                 {"duplicate name \"dtype\""});
}

TEST(Safetensors, RefusesOverlapsAndGaps) {
  const std::string a = entry("a", "U8", "[2]", "[0,2]");
  expect_refused(file_bytes("{" + a + "," + entry("b", "U8", "[2]", "[1,3]") + "}", 3),
                 {"tensor b", "byte 1", "tensor a", "byte 2"});
  expect_refused(file_bytes("{" + a + "," + entry("b", "U8", "[2]", "[0,2]") + "}", 2), {"byte 0", "byte 2"});
  expect_refused(file_bytes("{" + a + "," + entry("b", "U8", "[1]", "[3,4]") + "}", 4),
                 {"tensor b", "byte 3", "byte 2"});
  expect_refused(file_bytes("{" + entry("b", "U8", "[1]", "[1,2]") + "}", 2), {"tensor b", "byte 1", "byte 0"});
  expect_refused(file_bytes("{" + a + "}", 3), {"byte 2", "3 bytes of data"});
}

TEST(Safetensors, RefusesRangesThatDoNotFit) {
  expect_refused(file_bytes("{" + entry("x", "U8", "[9]", "[0,9]") + "}", 8), {"tensor x", "byte 9", "8 bytes"});
  expect_refused(file_bytes("{" + entry("x", "U8", "[1]", "[2,1]") + "}", 8), {"tensor x", "byte 2", "byte 1"});
  expect_refused(file_bytes("{" + entry("x", "U8", "[1]", "[0,18446744073709551615]") + "}", 8),
                 {"tensor x", "18446744073709551615", "8 bytes"});
  expect_refused(file_bytes("{" + entry("x", "F32", "[3]", "[0,8]") + "}", 8),
                 {"tensor x", "[3] of F32", "12 bytes", "span 8"});
  expect_refused(file_bytes("{" + entry("x", "F4", "[3]", "[0,2]") + "}", 2), {"tensor x", "[3] of F4", "byte"});
}

TEST(Safetensors, RefusesShapesThatOverflow) {
  const std::string huge = "4294967296";
  expect_refused(file_bytes("{" + entry("x", "U8", "[" + huge + "," + huge + "]", "[0,0]") + "}", 0),
                 {"tensor x", "[4294967296, 4294967296]", "overflows"});
  // The product of the shape fits, its bytes do not.
  expect_refused(file_bytes("{" + entry("x", "F64", "[2305843009213693952]", "[0,0]") + "}", 0),
                 {"tensor x", "overflows"});
  expect_refused(file_bytes("{" + entry("x", "U8", "[9223372036854775808]", "[0,0]") + "}", 0),
                 {"tensor x", "9223372036854775808"});
}

TEST(Safetensors, RefusesEntriesOfTheWrongKind) {
  expect_refused(file_bytes(R"({"x":1})", 0), {"tensor x", "object", "number"});
  expect_refused(file_bytes("{" + entry("x", "X9", "[1]", "[0,1]") + "}", 1), {"tensor x", "\"X9\""});
  expect_refused(file_bytes(R"({"x":{"dtype":8,"shape":[1],"data_offsets":[0,1]}})", 1), {"tensor x", "dtype 8"});
  expect_refused(file_bytes("{" + entry("x", "U8", "1", "[0,1]") + "}", 1), {"tensor x", "shape"});
  for (const char* size : {"-1", "1.0", "true", "\"1\"", "1e30"}) {
    expect_refused(file_bytes("{" + entry("x", "U8", std::string("[") + size + "]", "[0,1]") + "}", 1),
                   {"tensor x", "shape"});
  }
  expect_refused(file_bytes("{" + entry("x", "U8", "[1]", "[0,1,2]") + "}", 1), {"tensor x", "data_offsets"});
  expect_refused(file_bytes(R"({"x":{"dtype":"U8","shape":[1]}})", 1), {"tensor x", "no data_offsets"});
  expect_refused(file_bytes(R"({"x":{"dtype":"U8","data_offsets":[0,1]}})", 1), {"tensor x", "no shape"});
  expect_refused(file_bytes(R"({"x":{"shape":[1],"data_offsets":[0,1]}})", 1), {"tensor x", "no dtype"});
  expect_refused(file_bytes(R"({"__metadata__":{"a":1}})", 0), {"__metadata__", "a", "number"});
  expect_refused(file_bytes(R"({"__metadata__":[]})", 0), {"__metadata__", "array"});
}

TEST(Safetensors, ErrorsStayOnOneLineWhateverTheNames) {
  expect_refused(file_bytes(R"({"a\nb":1})", 0), {"a\\x0ab"});
  expect_refused(file_bytes("{\"" + std::string(100'000, 'n') + "\":1}", 0), {"nnn..."});
}

TEST(SafetensorsFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  expect_input_error([&] { SafetensorsFile(folder / "missing"); }, {"missing", "No such file"});
  expect_input_error([&] { SafetensorsFile(folder.path()); }, {folder.path().string(), "not a regular file"});
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_input_error([&] { SafetensorsFile(folder / "pipe"); }, {"pipe", "not a regular file"});
  write_file(folder / "empty", "");
  expect_input_error([&] { SafetensorsFile(folder / "empty"); }, {"empty", "0 bytes"});
}

TEST(SafetensorsFile, NamesTheTensorsThatThereAre) {
  const TemporaryFolder folder;
  write_tensors(folder / "f", {{"x", GATEFOLD_DTYPE_BF16, {2}}, {"z", GATEFOLD_DTYPE_BF16, {2}}});
  const SafetensorsFile file(folder / "f");
  EXPECT_EQ(file.find("y"), nullptr);
  EXPECT_EQ(file.at("x").bytes, 4U);
  expect_input_error([&] { (void)file.at("y"); }, {"no tensor y", "x, z"});
}

// How much of the tensor is mapped into this process. (mincore would tell what the kernel has cached.)
std::size_t resident_bytes(const Tensor& tensor) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(tensor.data) / page;
  const std::uintptr_t last = reinterpret_cast<std::uintptr_t>(tensor.data + tensor.bytes - 1) / page;
  std::vector<std::uint64_t> entries(last - first + 1);
  std::ifstream map("/proc/self/pagemap", std::ios::binary);
  map.seekg(static_cast<std::streamoff>(first * sizeof(std::uint64_t)));
  map.read(reinterpret_cast<char*>(entries.data()),
           static_cast<std::streamsize>(entries.size() * sizeof(std::uint64_t)));
  if (!map) throw std::runtime_error("cannot read /proc/self/pagemap");
  return page * static_cast<std::size_t>(std::ranges::count_if(entries, [](std::uint64_t e) { return e >> 63 != 0; }));
}

TEST(SafetensorsFile, TouchesOnlyWhatIsReadAndReleasesIt) {
  const TemporaryFolder folder;
  constexpr std::int64_t elements = 1 << 20;
  write_tensors(folder / "f", {{"a", GATEFOLD_DTYPE_FP32, {elements}, 7}, {"b", GATEFOLD_DTYPE_FP32, {elements}, 9}});
  const SafetensorsFile file(folder / "f");
  const Tensor& a = file.at("a");
  const Tensor& b = file.at("b");
  const auto sum = [](const Tensor& tensor) {
    std::uint64_t total = 0;
    for (const std::byte value : tensor.range()) total += std::to_integer<std::uint64_t>(value);
    return total;
  };
  // At most the few pages around the header and around a tensor's ends come along.
  constexpr std::size_t few = 256 << 10;
  EXPECT_LE(resident_bytes(a), few);
  const std::uint64_t first = sum(a);
  EXPECT_GE(resident_bytes(a), a.bytes - 4096);
  EXPECT_LE(resident_bytes(b), few);
  file.release(a);
  EXPECT_EQ(resident_bytes(a), 0U);
  file.will_need(a);
  EXPECT_EQ(sum(a), first) << "released pages are read again";
  file.release(a);
  EXPECT_EQ(sum(b), sum(b));
}

TEST(AlignedData, CopiesOnlyWhatIsMisaligned) {
  alignas(8) const std::byte memory[9] = {std::byte{0}, std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  const Tensor in_place = make_tensor("x", GATEFOLD_DTYPE_FP32, {2}, memory);
  EXPECT_TRUE(in_place.aligned());
  EXPECT_EQ(AlignedData(in_place).data(), memory);
  const Tensor misaligned = make_tensor("x", GATEFOLD_DTYPE_FP32, {2}, memory + 1);
  EXPECT_FALSE(misaligned.aligned());
  const AlignedData copy(misaligned);
  EXPECT_TRUE(copy.copied());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(copy.data()) % 4, 0U);
  EXPECT_TRUE(std::equal(copy.data(), copy.data() + 8, memory + 1));
}

// As many as a header of the largest size has room for. Time that is quadratic in them would be an hour.
TEST(Safetensors, HalfAMillionTensors) {
  constexpr std::int64_t count = 500'000;
  const TemporaryFolder folder;
  std::vector<std::byte> data(count);
  std::vector<Tensor> tensors;
  for (std::int64_t i = 0; i < count; ++i) {
    data[static_cast<std::size_t>(i)] = static_cast<std::byte>(i % 251);
    tensors.push_back({"model.layers." + std::to_string(i), {"U8", 8}, {1}, &data[static_cast<std::size_t>(i)], 1});
  }
  write_safetensors(folder / "f", tensors);
  const SafetensorsFile file(folder / "f");
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (const std::size_t i : {std::size_t{0}, tensors.size() / 2, tensors.size() - 1}) {
    EXPECT_EQ(file.tensors()[i].name, tensors[i].name);
    EXPECT_EQ(*file.tensors()[i].data, data[i]);
  }
}

// Another program may cut a file that is mapped. Its pages are gone then, and reading them is SIGBUS: for several
// threads at once, of which one says so.
TEST(SafetensorsDeathTest, AFileThatBecomesShorterIsNamed) {
  const TemporaryFolder folder;
  write_tensors(folder / "f", {{"x", GATEFOLD_DTYPE_FP32, {1 << 20}}});
  const SafetensorsFile file(folder / "f");
  const SafetensorsFile other(folder / "f");
  const std::span<const std::byte> data = file.at("x").range();
  constexpr int readers = 8;
  EXPECT_EXIT(
      {
        std::filesystem::resize_file(folder / "f", 4096);
        std::barrier all_there(readers);
        std::vector<std::jthread> threads;
        for (int i = 0; i < readers; ++i) {
          threads.emplace_back([&] {
            all_there.arrive_and_wait();
            const volatile std::byte last = data.back();
            static_cast<void>(last);
          });
        }
      },
      testing::ExitedWithCode(2), "^gatefold: [^\n]*/f: became shorter while it was read\n$");
}

}  // namespace
}  // namespace gatefold::checkpoint::test
