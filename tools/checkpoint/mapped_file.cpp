#include "checkpoint/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <functional>
#include <string_view>

#include "checkpoint/input_error.hpp"

namespace gatefold::checkpoint {
namespace {

class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      // Without O_NONBLOCK, opening a pipe would wait for somebody to write to it.
      : value_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (value_ < 0) throw_input_error(path.string(), ": ", error_text(errno));
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(value_); }

  int value() const { return value_; }

 private:
  int value_;
};

std::size_t size_of_regular_file(const Descriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file.value(), &status) != 0) throw_input_error(path.string(), ": ", error_text(errno));
  if (!S_ISREG(status.st_mode)) throw_input_error(path.string(), ": not a regular file");
  return static_cast<std::size_t>(status.st_size);
}

// madvise takes whole pages. Advice cannot fail in a way that matters: the data stay what they are.
void advise(std::span<const std::byte> range, int advice) {
  if (range.empty()) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t before = reinterpret_cast<std::uintptr_t>(range.data()) % page;  // bytes of the first page
  ::madvise(const_cast<std::byte*>(range.data()) - before, before + range.size(), advice);
}

// Called by a signal handler.
void print(std::string_view text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // there is nobody left to tell
}

}  // namespace

// All files that are mapped, for the handler. For one thread at a time.
class MappedFiles {
 public:
  static void add(MappedFile& file) {
    static const bool handled = (::sigaction(SIGBUS, &action(), nullptr), true);
    static_cast<void>(handled);
    file.next_ = first;
    first = &file;
  }

  static void remove(const MappedFile& file) {
    for (MappedFile** link = &first; *link != nullptr; link = &(*link)->next_) {
      if (*link != &file) continue;
      *link = file.next_;
      return;
    }
  }

 private:
  static const struct sigaction& action() {
    static struct sigaction action {};
    action.sa_sigaction = on_missing_page;
    action.sa_flags = SA_SIGINFO;
    return action;
  }

  static void on_missing_page(int number, siginfo_t* what, void* /*registers*/) {
    const auto* address = static_cast<const std::byte*>(what->si_addr);
    for (const MappedFile* file = first; file != nullptr; file = file->next_) {
      const std::span<const std::byte> bytes = file->bytes();
      if (std::less()(address, bytes.data()) || !std::less()(address, bytes.data() + bytes.size())) continue;
      if (told.test_and_set()) hold();
      print("gatefold: ");
      print(file->path_);
      print(": became shorter while it was read\n");
      ::_exit(2);
    }
    std::signal(number, SIG_DFL);  // somebody else's page: the access is tried again, and ends the program
  }

  // Several threads may come to missing pages at once: one tells, and ends them all.
  [[noreturn]] static void hold() {
    for (;;) ::pause();
  }

  static inline MappedFile* first = nullptr;
  static inline std::atomic_flag told;
};

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const Descriptor file(path);
  const std::size_t size = size_of_regular_file(file, path);
  if (size == 0) return;  // an empty mapping is not allowed
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, file.value(), 0);
  if (data == MAP_FAILED) throw_input_error(path.string(), ": cannot map ", size, " bytes: ", error_text(errno));
  bytes_ = {static_cast<const std::byte*>(data), size};
  MappedFiles::add(*this);
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  MappedFiles::remove(*this);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::release(std::span<const std::byte> range) const { advise(range, MADV_DONTNEED); }

void MappedFile::will_need(std::span<const std::byte> range) const { advise(range, MADV_WILLNEED); }

}  // namespace gatefold::checkpoint
