# A formula for Homebrew: brew install --formula ./strew.rb
class Strew < Formula
  desc "Predict how Kubernetes spreads pods, and say why"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license "Apache-2.0"

@for darwin
  if OS.mac? && Hardware::CPU.@CPU_BREW@?
    url "@URI@"
    sha256 "@SHA256@"
  end
@end
@for linux
  if OS.linux? && Hardware::CPU.@CPU_BREW@?
    url "@URI@"
    sha256 "@SHA256@"
  end
@end

  def install
    bin.install "strew"
    bin.install_symlink "strew" => "kubectl-strew"
    bin.install "kubectl_complete-strew"
    bash_completion.install "completions/strew.bash" => "strew"
    zsh_completion.install "completions/_strew"
    fish_completion.install "completions/strew.fish"
    man1.install Dir["man/*.1"]
    pkgshare.install "examples"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/strew version")
    system bin/"strew", "simulate", pkgshare/"examples/shop.yaml", "--until", "deploy"
  end
end
