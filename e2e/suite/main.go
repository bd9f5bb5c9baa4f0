// Command suite is Kubernetes' own end-to-end suite for scheduling in one file. Nothing in it is ours but the choice.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	manifests "k8s.io/kubernetes/test/e2e/testing-manifests"
	images "k8s.io/kubernetes/test/utils/image"

	// The specs.
	_ "k8s.io/kubernetes/test/e2e/scheduling"

	// What the framework does around each spec: it waits for the nodes, and tells of a namespace where a spec failed.
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
)

const usage = `usage: suite images
       suite run FLAGS
images: the images that specs run, a line for each: our name, and the name in pods
run: with the flags of Kubernetes' e2e.test`

func main() {
	if len(os.Args) < 2 {
		fail()
	}
	command := os.Args[1]
	os.Args = append(os.Args[:1], os.Args[2:]...)
	switch command {
	case "images":
		fmt.Println("agnhost", images.GetE2EImage(images.Agnhost))
		fmt.Println("pause", images.GetPauseImageName())
	case "run":
		if !run() {
			os.Exit(1)
		}
	default:
		fail()
	}
}

// run runs the specs that the flags choose, and tells whether all of them passed.
func run() bool {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	testfiles.AddFileSource(manifests.GetE2ETestingManifestsFS())
	framework.AfterReadingAllFlags(&framework.TestContext)
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := framework.CreateGinkgoConfig()
	return ginkgo.RunSpecs(nobody{}, "scheduling", suite, reporter)
}

// nobody stands where `go test` would be told of a failure.
type nobody struct{}

func (nobody) Fail() {}

func fail() {
	fmt.Fprintln(os.Stderr, usage)
	os.Exit(2)
}
