#!/bin/sh
# What the GitHub Action and the GitLab template run: strew simulate, lint, and diff against a base revision.
#
# Environment (STREW_FILES is required):
#   STREW_FILES       files and folders, separated by spaces or line breaks
#   STREW_ARGS        further arguments of simulate, for example --zones 3 --nodes 12
#   STREW_LINT_FILES  what lint looks into [default: STREW_FILES]; none: no lint
#   STREW_BASE        a git revision to compare with, for example origin/main; empty: no comparison
#   STREW_FAIL_ON_DIFF  true: a difference from the base fails the check
#   STREW_FAIL_ON_WARNINGS  false: warnings of simulate do not fail the check [default: true]
#   STREW             the program [default: strew]
#   STREW_OUT         the folder of the results [default: strew-results]
#
# Results: simulate.txt, junit.xml, lint.txt, lint.xml, strew.sarif, and with a base report.json, base.json, diff.txt; summary.md,
# which is appended to $GITHUB_STEP_SUMMARY where that is set.
# Exit code: the highest of 0 all holds; 1 a step, an expectation or a rule of lint failed; 2 wrong input; 3 no access.
set -u

strew=${STREW:-strew}
out=${STREW_OUT:-strew-results}
files=$(printf '%s' "${STREW_FILES:-}" | tr '\n' ' ')
arguments=$(printf '%s' "${STREW_ARGS:-}" | tr '\n' ' ')
lint_files=$(printf '%s' "${STREW_LINT_FILES:-$files}" | tr '\n' ' ')
base=${STREW_BASE:-}

if [ -z "$(printf '%s' "$files" | tr -d ' ')" ]; then
    echo "strew-check: STREW_FILES is empty: which files or folders?" >&2
    exit 2
fi
if ! command -v "$strew" >/dev/null 2>&1; then
    echo "strew-check: $strew is not a program; STREW names it" >&2
    exit 3
fi
mkdir -p "$out" || exit 3
# Of an earlier run.
rm -f "$out/lint.txt" "$out/lint.xml" "$out/strew.sarif" "$out/diff.txt" "$out/report.json" "$out/base.json"

worst=0
rows=""

# row CHECK CODE TEXT: a line of the summary; CODE counts for the exit code.
row() {
    case $2 in
        0) verdict="✅ passed" ;;
        1) verdict="❌ failed" ;;
        2) verdict="❌ wrong input" ;;
        -) verdict="➖" ;;
        *) verdict="❌ could not run (exit code $2)" ;;
    esac
    rows="$rows| $1 | $verdict | $3 |
"
    if [ "$2" != - ] && [ "$2" -gt "$worst" ]; then
        worst=$2
    fi
}

if [ "${STREW_FAIL_ON_WARNINGS:-true}" = true ]; then
    arguments="$arguments --fail-on=warnings"
fi

# Words are split on purpose: both are lists.
# shellcheck disable=SC2086
simulate() { "$strew" simulate $files $arguments "$@"; }

simulate >"$out/simulate.txt" 2>"$out/simulate.err"
code=$?
simulated=$code
cat "$out/simulate.txt" "$out/simulate.err"
simulate -o junit >"$out/junit.xml" 2>/dev/null
# Warnings are on the error stream, each beside its line.
warnings=$(grep -c '^warning' "$out/simulate.err")
told=$(tail -n 1 "$out/simulate.txt" | tr '|' '/')
if [ "$code" -gt 1 ]; then
    told=$(grep '^error' "$out/simulate.err" | tail -n 1 | tr '|' '/')
fi
case $told-$warnings in
    *-0 | *"--fail-on warnings"*) ;;
    *-1) told="$told; 1 warning" ;;
    *) told="$told; $warnings warnings" ;;
esac
row "\`strew simulate\`" $code "$told"

if [ "$lint_files" = none ]; then
    row "\`strew lint\`" - "not asked for"
else
    # shellcheck disable=SC2086
    "$strew" lint $lint_files >"$out/lint.txt" 2>&1
    code=$?
    cat "$out/lint.txt"
    # shellcheck disable=SC2086
    "$strew" lint $lint_files -o sarif >"$out/strew.sarif" 2>/dev/null
    # shellcheck disable=SC2086
    "$strew" lint $lint_files -o junit >"$out/lint.xml" 2>/dev/null
    told=$(tail -n 1 "$out/lint.txt" | tr '|' '/')
    if [ "$code" -gt 1 ]; then
        told=$(grep '^error' "$out/lint.txt" | tail -n 1 | tr '|' '/')
    fi
    row "\`strew lint\`" $code "$told"
fi

# compare: the files of the base revision are written beside the work tree, and played with the same words. Nothing is
# written into the repository, which may belong to another user: a runner clones as root, and a container runs as nobody.
compare() {
    if [ "$simulated" -gt 1 ]; then
        row "\`strew diff\`" - "not compared: \`strew simulate\` could not play the files"
        return
    fi
    if ! command -v git >/dev/null 2>&1; then
        row "\`strew diff\`" - "not compared: git is not installed"
        return
    fi
    tree=$(mktemp -d) || return
    project=${CI_PROJECT_DIR:-${GITHUB_WORKSPACE:-}}
    if [ -n "$project" ]; then
        export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0="$project"
    fi
    here=$(git rev-parse --show-prefix 2>/dev/null)
    mkdir "$tree/base"
    if ! (
        cd "./$(git rev-parse --show-cdup)" &&
            export GIT_INDEX_FILE="$tree/index" &&
            git read-tree "$base" &&
            git checkout-index --all --prefix="$tree/base/"
    ) 2>"$out/diff.txt"; then
        told=$(head -n 1 "$out/diff.txt" | tr '|' '/')
        row "\`strew diff\`" 2 "no revision $base: fetch it first (fetch-depth: 0, or GIT_DEPTH: 0). git says: $told"
        rm -rf "$tree"
        return
    fi
    simulate -o json >"$out/report.json" 2>/dev/null
    # What the change adds is not in the base.
    both=""
    new=""
    for file in $files; do
        case $file in
            /*) both="$both $file" ;;
            *) if [ -e "$tree/base/$here$file" ]; then both="$both $file"; else new="$new $file"; fi ;;
        esac
    done
    if [ -z "$both" ]; then
        rm -rf "$tree"
        row "\`strew diff\`" - "not compared: not in $base:$new"
        return
    fi
    (
        files=$both
        cd "$tree/base/$here" 2>/dev/null && simulate -o json
    ) >"$out/base.json" 2>"$out/diff.txt"
    played=$?
    rm -rf "$tree"
    if [ "$played" -gt 1 ]; then
        row "\`strew diff\`" - "not compared: the files of $base cannot be played ($(head -n 1 "$out/diff.txt" | tr '|' '/'))"
        return
    fi
    "$strew" diff "$out/base.json" "$out/report.json" >"$out/diff.txt" 2>&1
    code=$?
    cat "$out/diff.txt"
    compared="$base${new:+; not in it:$new}"
    case $code in
        0) row "\`strew diff\`" - "as $compared" ;;
        1)
            if [ "${STREW_FAIL_ON_DIFF:-false}" = true ]; then
                row "\`strew diff\`" 1 "another spread than $compared"
            else
                row "\`strew diff\`" - "another spread than $compared"
            fi
            ;;
        *) row "\`strew diff\`" - "not compared: $(head -n 1 "$out/diff.txt" | tr '|' '/')" ;;
    esac
}
if [ -n "$base" ]; then
    compare
fi

# block TITLE FILE: a folded part of the summary.
block() {
    if [ -s "$2" ]; then
        printf '\n<details><summary>%s</summary>\n\n```text\n' "$1"
        head -c 60000 "$2"
        printf '\n```\n\n</details>\n'
    fi
}
{
    printf '### strew\n\n| check | result | |\n|---|---|---|\n%s' "$rows"
    block "Pods and domains" "$out/simulate.txt"
    block "Errors, warnings and notes" "$out/simulate.err"
    block "Lint" "$out/lint.txt"
    [ -n "$base" ] && block "Difference from $base" "$out/diff.txt"
} >"$out/summary.md"
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    cat "$out/summary.md" >>"$GITHUB_STEP_SUMMARY"
fi
exit "$worst"
