// The room CofferKeys.
