// The room CofferServer.
