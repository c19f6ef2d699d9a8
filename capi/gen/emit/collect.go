package emit

// collect gathers the types of operations, requests and options.
func collect() types { return types{} }
