package main

import (
	"io"
	"os"
)

// endWithParent ends this process when its standard input does. Whoever starts it holds the other end of
// that pipe, so a component outlives its starter by nothing, even if the starter is killed.
func endWithParent() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}
