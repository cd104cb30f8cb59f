#include "models.hpp"

#include <algorithm>
#include <stdexcept>

#include "program.hpp"

namespace gatefold::bench {

int Model::layers() const { return static_cast<int>(std::max<std::int64_t>(2, 640'000'000 / weight_bytes())); }

std::vector<Model> chosen_models(const std::string& name, const std::string& sizes) {
  if (!sizes.empty()) {
    if (!name.empty()) throw std::invalid_argument("--model " + name + " was given together with --sizes: give one");
    const std::size_t between = sizes.find('x');
    if (between == std::string::npos) throw std::invalid_argument("--sizes: \"" + sizes + "\" is not two sizes, DxF");
    return {{sizes, whole_number("--sizes, D", sizes.substr(0, between), 1),
             whole_number("--sizes, F", sizes.substr(between + 1), 1)}};
  }
  std::vector<Model> models{{"llama3.2-1b", 2048, 8192},
                            {"llama3.1-8b", 4096, 14336},
                            {"llama3.1-70b", 8192, 28672},
                            {"llama3.1-405b", 16384, 53248}};
  if (name.empty()) return models;
  std::erase_if(models, [&](const Model& m) { return m.name != name; });
  if (models.empty()) throw std::invalid_argument("--model: \"" + name + "\" is none of the models here: give --sizes");
  return models;
}

}  // namespace gatefold::bench
