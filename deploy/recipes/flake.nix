{
  description = "strew: predicts how Kubernetes spreads pods, and says why";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      archives = {
@for linux darwin
        "@NIX@" = {
          url = "@URI@";
          sha256 = "@SHA256@";
        };
@end
      };
      package =
        system: archive:
        let
          pkgs = nixpkgs.legacyPackages.${system};
        in
        pkgs.stdenvNoCC.mkDerivation {
          pname = "strew";
          version = "@VERSION@";
          src = pkgs.fetchurl archive;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          dontBuild = true;
          dontStrip = true;
          installPhase = ''
            install -D strew $out/bin/strew
            ln -s strew $out/bin/kubectl-strew
            install -D kubectl_complete-strew -t $out/bin
            installShellCompletion completions/strew.bash completions/_strew completions/strew.fish
            installManPage man/*.1
          '';
          meta = {
            homepage = "@HOMEPAGE@";
            license = pkgs.lib.licenses.asl20;
            mainProgram = "strew";
          };
        };
    in
    {
      packages = builtins.mapAttrs (system: archive: { default = package system archive; }) archives;
    };
}
