// The room CofferVault.
