// Command descheduler is the descheduler as it is published. Nothing in it is ours.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"sigs.k8s.io/descheduler/cmd/descheduler/app"
)

func main() {
	command := app.NewDeschedulerCommand(os.Stdout)
	os.Exit(cli.Run(command))
}
