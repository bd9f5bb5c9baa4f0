package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
)

// writeKeys fills a folder with what a run needs to know its own people: the key that signs service
// accounts' tokens, the administrator's token, and a kubeconfig for the API server at `server`.
func writeKeys(folder, server string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	secret := make([]byte, 16)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	token := hex.EncodeToString(secret)
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	files := map[string]string{
		"sa.key":     string(pem.EncodeToMemory(block)),
		"tokens.csv": token + ",admin,admin,system:masters\n",
		"kubeconfig": fmt.Sprintf(kubeconfig, server, token),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// The API server makes a certificate of its own at each start, so there is no authority to name.
const kubeconfig = `apiVersion: v1
kind: Config
clusters:
- name: lab
  cluster: {server: "%s", insecure-skip-tls-verify: true}
users:
- name: admin
  user: {token: "%s"}
contexts:
- name: lab
  context: {cluster: lab, user: admin}
current-context: lab
`
