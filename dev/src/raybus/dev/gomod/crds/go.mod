// Modules whose files hold the CRDs that the recordings need; nothing is compiled.
module raybus.invalid/dev/crds

go 1.26

require (
	github.com/cert-manager/cert-manager v1.19.4
	sigs.k8s.io/gateway-api v1.4.1
)
