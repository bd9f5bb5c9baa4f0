//go:build node

package main

import (
	"context"

	"github.com/spf13/cobra"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// What runs on a real node. Left out by default: it is a quarter of the build, and most runs have no nodes.
func init() {
	nodeCommands["kubelet"] = func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }
	nodeCommands["proxy"] = proxy.NewProxyCommand
}
