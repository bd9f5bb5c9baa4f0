// Command controlplane is a Kubernetes control plane in one file: each subcommand runs one of its
// components, or kubectl, with that component's own flags. Nothing in it is ours but the choice.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// nodeCommands are those of a build for real nodes (tag node).
var nodeCommands = map[string]func() *cobra.Command{}

const usage = `usage: controlplane [attached] etcd|apiserver|controller-manager|scheduler|kwok|kubectl|kubelet|proxy FLAGS
       controlplane keys FOLDER SERVER
attached: end when standard input does`

func main() {
	// The components read their flags where their own program would find them.
	os.Args = os.Args[1:]
	if len(os.Args) > 0 && os.Args[0] == "attached" {
		endWithParent()
		os.Args = os.Args[1:]
	}
	if len(os.Args) == 0 {
		fail(2, usage)
	}
	name := os.Args[0]
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "apiserver":
		run(apiserver.NewAPIServerCommand())
	case "controller-manager":
		run(controllers.NewControllerManagerCommand())
	case "scheduler":
		run(scheduler.NewSchedulerCommand())
	case "kwok":
		runKwok()
	case "kubectl":
		runKubectl()
	case "keys":
		if len(os.Args) != 3 {
			fail(2, usage)
		}
		if err := writeKeys(os.Args[1], os.Args[2]); err != nil {
			fail(3, err)
		}
	default:
		command, known := nodeCommands[name]
		if !known {
			fail(2, usage)
		}
		run(command())
	}
}

func run(command *cobra.Command) {
	os.Exit(cli.Run(command))
}

// runKubectl does as kubectl's own main: without logging flags, and with its way of telling errors.
func runKubectl() {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}

func fail(code int, why any) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(code)
}
