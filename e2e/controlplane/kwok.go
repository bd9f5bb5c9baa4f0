package main

import (
	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

// runKwok plays the kubelets of all nodes. kwok takes its stages (`--config`) from flags that it reads
// before its command exists, hence the two passes over the arguments.
func runKwok() {
	// Other components have put flags of theirs there (`--version`, not a bool), which cobra would take over.
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	early := pflag.NewFlagSet("early", pflag.ContinueOnError)
	early.ParseErrorsAllowlist.UnknownFlags = true
	early.Usage = func() {}
	ctx, _ := log.InitFlags(signals.SetupSignalContext(), early)
	ctx, err := config.InitFlags(ctx, early)
	if err != nil {
		fail(1, err)
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(early)
	if err := command.ExecuteContext(ctx); err != nil {
		fail(1, err)
	}
}
